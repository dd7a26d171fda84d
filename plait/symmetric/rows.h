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

class SymmetricRows {
 public:
  // Collective. Room for `floats` floats on this rank; every rank gets as much as the largest asks
  // for. Throws DoesNotFitError.
  SymmetricRows(World& world, std::uint64_t floats);

  float* own() { return own_; }
  std::uint64_t floats() const { return floats_; }
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
  std::unique_ptr<SymmetricHeap> heap_;
  Buffer<float> private_;
  std::vector<const float*> peers_;
  float* own_ = nullptr;
  std::uint64_t floats_ = 0;
};

}  // namespace plait
