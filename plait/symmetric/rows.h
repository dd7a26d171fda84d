// Feature rows in the symmetric heap: each rank's slots (own rows first, the halo after), where
// any rank on the host can read them by (rank, row).
//
// Where ranks are on several hosts there is no common memory: the slots are then private, and
// peer() is null; rows travel as messages instead.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plait/base/array.h"
#include "plait/symmetric/heap.h"

namespace plait {

// Of ranks without common memory.
class PrivateRows {
 public:
  // Throws DoesNotFitError.
  explicit PrivateRows(std::size_t bytes);
  std::size_t bytes() const { return memory_.size() * sizeof(float); }
  float* data() { return memory_.data(); }

 private:
  Buffer<float> memory_;
};

class SymmetricRows {
 public:
  // There is no room yet. The world outlives this.
  explicit SymmetricRows(World& world) : world_(world) {}
  SymmetricRows(const SymmetricRows&) = delete;
  SymmetricRows& operator=(const SymmetricRows&) = delete;

  // Collective. Room for `floats` floats on this rank; every rank gets as much as the largest asks
  // for. What stood there is lost. Throws DoesNotFitError on all ranks; there is then as much room
  // as before, or, where the machine does not give back what it took, lost().
  void reserve(std::uint64_t floats);
  // No room is left after a reserve() that failed.
  bool lost() const { return lost_; }

  float* own() { return own_; }
  // The memory of `rank`, or null if it is not mapped here.
  const float* peer(int rank) const {
    return peers_.empty() ? nullptr : peers_[static_cast<std::size_t>(rank)];
  }
  // One pointer a rank, or null.
  const float* const* peers() const { return peers_.empty() ? nullptr : peers_.data(); }
  bool shared() const { return !peers_.empty(); }
  // What ranks wrote before is read by all after. Nothing to do for a single rank or where rows
  // travel as messages.
  void barrier();

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
