// Ranks: the processes that work on one graph, and what they do together.
//
// A World is made once a process, from what its environment names (see launch.h). Collectives go
// through c10d (Gloo); every rank calls the same ones in the same order, from one thread. None
// waits longer than `WorldConfig::timeout` for a rank that is gone: it throws LostRankError with
// the lost rank and what that was doing, or, where the main thread is busy or blocked elsewhere,
// liveness.h prints this error and ends the process.
//
// Ranks leave together: the destructor waits until every rank has come to its own (or is lost). A
// World destroyed by an exception instead tells the others at once that this rank has failed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plait/world/secret.h"
#include "plait/world/watched_work.h"

namespace plait {

struct WorldConfig {
  int rank = 0;
  int size = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::string interface_address;  // where this rank listens: an address of this host or the name
                                  // of an interface; empty: found from the master
  std::string listen_address;  // where the store listens that rank 0 keeps; empty: at the master's
  bool store_is_external = false;      // the launcher or torchrun keeps the store; else rank 0 does
  bool store_is_torchruns = false;     // of those, torchrun
  std::string store_prefix = "plait";  // put before every key
  Secret secret{};                     // that the store asks for; all zero: none
  std::chrono::milliseconds timeout{5000};        // after this, a silent rank is lost
  std::chrono::milliseconds join_timeout{60000};  // for programs to start on all hosts
  // A rank is lost when its watched work stands still for so long without waiting for another rank;
  // zero: never.
  std::chrono::milliseconds work_timeout{600000};
};

class World {
 public:
  // Joins; returns when every rank has. Throws LostRankError or Error within the join timeout.
  static std::unique_ptr<World> join(const WorldConfig& config);
  // A world of one, without any network.
  static std::unique_ptr<World> alone();
  virtual ~World() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::chrono::milliseconds timeout() const = 0;

  virtual void barrier() = 0;
  // Element-wise sums over ranks; the result is the same bits on every rank.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual void all_reduce_sum(std::span<double> values) = 0;
  // Concatenates what every rank gives (sizes may differ), by rank.
  virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) = 0;
  // send[r] goes to rank r; received[r] comes from rank r. Sizes known to both sides.
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  // Whether all ranks run on one host (then they share memory).
  virtual bool one_host() const = 0;
  // A small key-value store common to all ranks. `get` waits up to the timeout.
  virtual void store_set(const std::string& key, const std::string& value) = 0;
  virtual std::string store_get(const std::string& key) = 0;

  // Throws LostRankError if the liveness watch has lost a rank. For loops that wait on memory.
  virtual void check_alive() = 0;
  // Says that an operation outside World's own begins in which all ranks take part (a barrier on
  // shared memory), so that a rank that has left without it is found out.
  virtual void begin_operation() {}
  // Throws the error of a lost rank for an operation outside World's own that has failed with
  // `error`, as it does when a rank is lost: waits for the verdict up to the timeout. Without a
  // verdict, throws Error with that text.
  [[noreturn]] virtual void explain(const std::string& error);
  // From watch() to unwatch(), the watch over ranks looks at the work, and ends its waits once a
  // rank is lost or this one has left. A world of one looks at none.
  virtual void watch(WatchedWork&) {}
  virtual void unwatch(WatchedWork&) {}
  // Bytes of payload this rank has sent through collectives so far.
  virtual std::uint64_t bytes_sent() const = 0;
};

}  // namespace plait
