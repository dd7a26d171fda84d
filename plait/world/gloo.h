// Collectives over TCP through c10d's Gloo process group. This header needs no header of libtorch.
//
// Once joined, Gloo itself waits for a peer for ever: a rank may compute, or pause, for long. It is
// liveness.h that ends a wait for a rank that is gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "plait/world/rendezvous.h"

namespace plait {

// The place of this rank in a group.
struct GlooOptions {
  int rank = 0;
  int size = 1;
  RendezvousAddress store;
  std::string interface;  // name or address of the network interface to use
  std::chrono::milliseconds join_timeout{60000};
};

// A group of all ranks. All members throw Error when a peer vanishes; after that, the group is of
// no use. All but end_waits() and bytes_sent() are collective.
class Gloo {
 public:
  // Returns when all ranks have joined. Throws Error after the join timeout.
  static std::unique_ptr<Gloo> join(const GlooOptions& options);
  virtual ~Gloo() = default;

  // As World's functions of these names. The part of all_to_all() that a rank sends to itself is
  // copied.
  virtual void barrier() = 0;
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual void all_reduce_sum(std::span<double> values) = 0;
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // By any thread. An all_to_all() that another thread is in, and all later ones, throw Error.
  virtual void end_waits() = 0;
  // Returns the bytes of payload that this rank has put on the network.
  virtual std::uint64_t bytes_sent() const = 0;
};

}  // namespace plait
