// Ranks: the processes that work on one graph, and their collective operations.
//
// Each process makes one World, from the names in its environment (see launch.h). Collectives go
// through memory that the ranks share, or through c10d (Gloo) if they are on several hosts; every
// rank calls the same ones in the same order, from one thread. None waits longer than
// `WorldConfig::timeout` for a rank that is gone: it throws a LostRankError with the lost rank and
// its last phase; or, if the main thread is busy or blocked elsewhere, liveness.h prints this error
// and ends the process.
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

#include "plait/base/channel.h"
#include "plait/world/reduction.h"
#include "plait/world/secret.h"
#include "plait/world/watched_work.h"

namespace plait {

// The place of a process among the ranks, and the times that it waits.
struct WorldConfig {
  int rank = 0;
  int size = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  // Where this rank listens: an address of this host or the name of an interface; empty: found from
  // the master.
  std::string interface_address;
  // Where the store that rank 0 keeps listens; empty: at the master's address.
  std::string listen_address;
  bool store_is_external = false;      // the launcher or torchrun keeps the store; else rank 0 does
  bool store_is_torchruns = false;     // if external: torchrun keeps it
  std::string store_prefix = "plait";  // put before every key
  Secret secret{};                     // asked for by the store; all zero: none
  std::chrono::milliseconds timeout{5000};        // after this, a silent rank is lost
  std::chrono::milliseconds join_timeout{60000};  // for programs to start on all hosts
  // A rank is lost when its watched work stands still for so long without waiting for another rank;
  // zero: never.
  std::chrono::milliseconds work_timeout{600000};
};

// The ranks as one process sees them. Members that are collective throw LostRankError if a rank is
// lost, Error if the network fails.
class World {
 public:
  // Joins the world and returns when every rank has. Throws LostRankError or Error within the join
  // timeout.
  static std::unique_ptr<World> join(const WorldConfig& config);
  // Returns a world of one, without any network.
  static std::unique_ptr<World> alone();
  virtual ~World() = default;

  // This rank, from 0; the number of ranks; the time after which a silent rank is lost.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::chrono::milliseconds timeout() const = 0;

  // Collective. Returns when all ranks have called it.
  virtual void barrier() = 0;
  // Collective. Replaces values by their reduction over ranks, the same bits on every rank. All
  // ranks give the same number of values of the same type.
  virtual void all_reduce(const ReducedValues& values, Reduction how) = 0;
  // Collective. The same for a span, an array or a vector.
  template <class Values>
  void all_reduce_sum(Values&& values) {
    all_reduce(all_of(values), Reduction::sum);
  }
  template <class Values>
  void all_reduce_min(Values&& values) {
    all_reduce(integers_of(values), Reduction::min);
  }
  template <class Values>
  void all_reduce_max(Values&& values) {
    all_reduce(integers_of(values), Reduction::max);
  }
  // Collective. Returns by rank the bytes that every rank gives; sizes may differ.
  virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) = 0;
  // Collective. send[r] goes to rank r; received[r] comes from rank r. Both sides know the sizes.
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received) = 0;
  // Collective. Replaces `bytes`, of the same size on all ranks, by the bytes of `root`, which is
  // the same on all. Throws UsageError if there is no such rank.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  // Collective. Returns a channel between ranks for another thread. The world outlives the channel.
  virtual std::unique_ptr<Channel> open_channel() = 0;

  // Tells whether all ranks run on one host (then they share memory).
  bool one_host() const { return static_cast<int>(ranks_of_host().size()) == size(); }
  // Returns the ranks that run on this rank's host, this one among them, in ascending order.
  virtual const std::vector<int>& ranks_of_host() const = 0;
  // Collective when it is first called. Returns the ranks of this rank's host as a world of their
  // own, without the ranks of other hosts: they are numbered from 0 in the order of
  // ranks_of_host(). If all ranks are on one host, it is this world. It lives as long as this one,
  // and a rank that is lost on any host is an error there, too, with its number in this world.
  virtual World& host_world() { return *this; }
  // Returns the number of a rank of this world among all ranks of the run, for messages.
  virtual int number_of(int rank) const { return rank; }
  // A small key-value store common to all ranks; not collective. store_get() waits for the key up
  // to the timeout, then throws Error.
  virtual void store_set(const std::string& key, const std::string& value) = 0;
  virtual std::string store_get(const std::string& key) = 0;

  // Throws LostRankError if the liveness watch has lost a rank. For loops that wait on memory.
  virtual void check_alive() = 0;
  // Must be called when all ranks begin an operation that is not World's, such as a barrier on
  // shared memory. A rank that has left without it is then found out. `place`: the memory where
  // ranks meet, as numbered by new_place(); a rank that waits elsewhere is found out, too.
  virtual void begin_operation(std::uint64_t place) { static_cast<void>(place); }
  // Returns a number for memory where ranks meet. All ranks call this in the same order.
  std::uint64_t new_place() { return places_++; }
  // Must be called when an operation that is not World's has failed with `error`, as it does when a
  // rank is lost. Waits for the verdict up to the timeout and throws its LostRankError. Without a
  // verdict, throws Error with this text.
  [[noreturn]] virtual void explain(const std::string& error);
  // Tells all ranks that this rank "failed REASON", if they wait for it in a way that only the end
  // of their processes ends. Returns at once. As after any loss, calls throw LostRankError from
  // then on, and each process has another timeout to end by itself.
  virtual void declare_failed(const std::string&) {}
  // From watch() to unwatch(), the watch over ranks looks at the work, and ends its waits once a
  // rank is lost or this rank has left. A world of one rank looks at no work. The work must live
  // until unwatch().
  virtual void watch(WatchedWork&) {}
  virtual void unwatch(WatchedWork&) {}
  // Tells whether there is a watch: also in a world of one rank, if others are on other hosts.
  virtual bool is_watched() const { return size() > 1; }
  // Returns the bytes of payload that this rank has sent through collectives so far.
  virtual std::uint64_t bytes_sent() const = 0;

 private:
  template <class Values>
  static auto all_of(Values& values) {
    return std::span<typename decltype(std::span(values))::element_type>(values);
  }
  template <class Values>
  static auto integers_of(Values& values) {
    static_assert(std::integral<typename decltype(std::span(values))::element_type>,
                  "least and largest values are taken of integers");
    return all_of(values);
  }

  std::uint64_t places_ = 0;
};

}  // namespace plait
