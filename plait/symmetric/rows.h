// Feature rows in the symmetric heap: each rank's slots (own rows first, the halo after), where any
// rank on the host can read them by (rank, row).
//
// If ranks are on several hosts there is no common memory: the slots are then private, and peer()
// is null; rows travel as messages instead.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plait/base/array.h"
#include "plait/symmetric/heap.h"

namespace plait {

// Memory of one rank, for ranks without common memory.
class PrivateRows {
 public:
  // Throws DoesNotFitError.
  explicit PrivateRows(std::size_t bytes);
  std::size_t bytes() const { return memory_.size() * sizeof(float); }
  float* data() { return memory_.data(); }

 private:
  Buffer<float> memory_;
};

// The slots of all ranks of this host. reserve() moves them.
class SymmetricRows {
 public:
  // There is no room yet. The world outlives this object.
  explicit SymmetricRows(World& world) : world_(world) {}
  SymmetricRows(const SymmetricRows&) = delete;
  SymmetricRows& operator=(const SymmetricRows&) = delete;

  // Collective. Makes room for `floats` floats on this rank; if memory is shared, every rank gets
  // as much as the largest asks for. The old content is lost. Throws DoesNotFitError on all ranks;
  // there is then as much room as before, or none (lost()).
  void reserve(std::uint64_t floats);
  // Tells whether a reserve() that failed has left no room.
  bool lost() const { return lost_; }

  // This rank's slots, valid until the next reserve().
  float* own() { return own_; }
  // Returns the slots of `rank`, or null if they are not mapped here.
  const float* peer(int rank) const {
    return peers_.empty() ? nullptr : peers_[static_cast<std::size_t>(rank)];
  }
  // Returns one pointer per rank, or null if memory is not shared.
  const float* const* peers() const { return peers_.empty() ? nullptr : peers_.data(); }
  bool shared() const { return !peers_.empty(); }
  // Collective. Rows that ranks wrote before it are read by all after it. Does nothing for a single
  // rank or if rows travel as messages. Throws LostRankError.
  void barrier();
  // Collective. The same barrier if rows are shared, which returns each rank's word; else does
  // nothing.
  std::vector<std::uint64_t> barrier(std::uint64_t word);

 private:
  void find_parts();

  World& world_;
  std::unique_ptr<SymmetricHeap> heap_;
  std::unique_ptr<PrivateRows> private_;
  std::vector<const float*> peers_;
  float* own_ = nullptr;
  bool lost_ = false;
};

}  // namespace plait
