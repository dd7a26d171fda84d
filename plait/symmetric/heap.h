// The symmetric heap: memory of the same shape on every rank, which any rank can read and write by
// (rank, offset): a partitioned global address space, as in OpenSHMEM (MGG section 4.2 keeps the
// node embeddings in one).
//
// On one host it is anonymous shared memory (memfd) whose descriptors are handed between the
// processes over a socket that only this user may use: it has no name in the file system, and
// nothing is left when the processes are gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plait/symmetric/agreement.h"
#include "plait/world/world.h"

namespace plait {

// The parts of all ranks, mapped into this process.
class SymmetricHeap {
 public:
  // Collective. Every rank gets `bytes` (the same on all, or by `rule` the most that any asks for),
  // zeroed. Throws DoesNotFitError before allocating if the host has less free, UsageError if ranks
  // are on several hosts or sizes differ.
  static std::unique_ptr<SymmetricHeap> create(World& world, std::size_t bytes,
                                               SizeRule rule = SizeRule::equal);
  // Collective. As create(), in place of the memory of `heap`, which counts as free and whose
  // content is lost. After a DoesNotFitError, `heap` is as large as it was, and untouched if the
  // size was refused; it is null if the memory that was freed could not be taken again.
  static void replace(World& world, std::unique_ptr<SymmetricHeap>& heap, std::size_t bytes,
                      SizeRule rule = SizeRule::equal);
  virtual ~SymmetricHeap() = default;

  // Returns the bytes of each rank's part.
  virtual std::size_t bytes() const = 0;
  // Returns the part of `rank`, mapped here; reads and writes are plain loads and stores. Only
  // barrier() orders them between ranks.
  virtual std::span<std::byte> part(int rank) = 0;
  // Collective. Every write of every rank before its barrier() is seen by every rank after it.
  // Throws LostRankError if a rank is lost meanwhile.
  virtual void barrier() = 0;
  // Collective. The same barrier, which returns the word that each rank has brought to it.
  virtual std::vector<std::uint64_t> barrier(std::uint64_t word) = 0;
};

}  // namespace plait
