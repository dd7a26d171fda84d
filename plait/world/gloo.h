// Collectives over TCP through c10d's Gloo process group. No header of libtorch is needed here.
//
// Gloo itself waits half an hour for a peer: a rank may compute for long. It is liveness.h that
// ends a wait for a rank that is gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "plait/world/store.h"

namespace plait {

struct GlooOptions {
  int rank = 0;
  int size = 1;
  StoreAddress store;
  std::string interface;  // name or address of the network interface to use
  std::chrono::milliseconds join_timeout{60000};
};

// All members throw Error when a peer vanishes; after that, the group is of no use.
class Gloo {
 public:
  static std::unique_ptr<Gloo> join(const GlooOptions& options);
  virtual ~Gloo() = default;

  virtual void barrier() = 0;
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual void all_reduce_sum(std::span<double> values) = 0;
  // As World's. The part that a rank sends to itself is copied.
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // Bytes of payload that this rank has put on the network.
  virtual std::uint64_t bytes_sent() const = 0;
};

}  // namespace plait
