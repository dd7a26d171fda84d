// A group of ranks and the operations in which all of them take part: over the network (gloo.h), or
// through memory that the ranks of one host share (host_collectives.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plait/base/error.h"
#include "plait/world/reduction.h"

namespace plait {

// Throws UsageError unless all_to_all() is given one part per rank, and the part that `rank` sends
// to itself has as many bytes as it has room for.
inline void require_parts(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received, int rank, int ranks) {
  const auto own = static_cast<std::size_t>(rank), all = static_cast<std::size_t>(ranks);
  require<UsageError>(send.size() == all && received.size() == all,
                      "{} and {} parts were given for {} ranks", send.size(), received.size(), all);
  require<UsageError>(send[own].size() == received[own].size(),
                      "a rank sends itself {} bytes, but has room for {}", send[own].size(),
                      received[own].size());
}

// The operations throw Error on all ranks when a peer has left or failed, and over the network also
// when its process has ended; after an error, the group is of no use. All but end_waits() and
// bytes_sent() are collective.
class Collectives {
 public:
  virtual ~Collectives() = default;

  // As World's functions of these names. The part of all_to_all() that a rank sends to itself is
  // copied.
  virtual void barrier() = 0;
  virtual void all_reduce(const ReducedValues& values, Reduction how) = 0;
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // By any thread. An all_to_all() that waits in another thread, and all later ones, throw Error.
  virtual void end_waits() = 0;
  // Returns the bytes of payload that this rank has given to others.
  virtual std::uint64_t bytes_sent() const = 0;
};

}  // namespace plait
