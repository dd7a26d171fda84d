// The symmetric heap: memory of the same shape on every rank, which any rank can read and write by
// (rank, offset): a partitioned global address space, as in OpenSHMEM (MGG section 4.2 keeps the
// node embeddings in one).
//
// On one host it is anonymous shared memory (memfd) whose descriptors are handed between the
// processes over a socket that only this user may use: it has no name in the file system, and
// nothing is left when the processes are gone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "plait/symmetric/agreement.h"
#include "plait/world/world.h"

namespace plait {

class SymmetricHeap {
 public:
  // Collective. Every rank gets `bytes` (the same on all, or by `rule` the most that any asks for),
  // zeroed. Throws DoesNotFitError before allocating when the host has not that much free,
  // UsageError when ranks are on several hosts.
  static std::unique_ptr<SymmetricHeap> create(World& world, std::size_t bytes,
                                               SizeRule rule = SizeRule::equal);
  // Collective. create(), in place of what `heap` holds, which counts as free and is lost. Where it
  // throws DoesNotFitError, `heap` is as large as it was, and untouched if it is refused by its
  // size; if what was freed cannot be had again, it is null.
  static void replace(World& world, std::unique_ptr<SymmetricHeap>& heap, std::size_t bytes,
                      SizeRule rule = SizeRule::equal);
  virtual ~SymmetricHeap() = default;

  virtual std::size_t bytes() const = 0;
  // The part of `rank`, mapped here; reads and writes are plain loads and stores. They are ordered
  // between ranks by barrier() alone.
  virtual std::span<std::byte> part(int rank) = 0;
  // Every write of every rank before its barrier() is seen by every rank after it. Throws
  // LostRankError when a rank is lost meanwhile.
  virtual void barrier() = 0;
};

}  // namespace plait
