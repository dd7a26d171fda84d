// A number of steps from a source and the vertex of the step before, as one number, with the steps
// in its upper bits: the least of all offers has the fewest steps, and of these the least vertex.
#pragma once

#include <bit>
#include <cstdint>

#include "plait/frontier/shared_value.h"

namespace plait {

class PathKey {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  // of vertices that are not reached

  explicit PathKey(std::uint64_t vertices) : bits_(std::bit_width(vertices)) {}
  PLAIT_HOST_DEVICE std::uint64_t of(std::uint64_t depth, std::uint64_t parent) const {
    return depth << bits_ | parent;
  }
  PLAIT_HOST_DEVICE std::uint64_t depth(std::uint64_t key) const { return key >> bits_; }
  PLAIT_HOST_DEVICE std::uint64_t parent(std::uint64_t key) const {
    return key & ((std::uint64_t{1} << bits_) - 1);
  }
  // The depths that can be told from kNone.
  std::uint64_t depths() const { return kNone >> bits_; }

  // Offers a slot the path over a row, whose vertex has this number. Tells whether the slot's path
  // has become shorter: rows are told to go on once, as another parent at the same depth is no news
  // to those after them.
  PLAIT_HOST_DEVICE bool offer(std::uint64_t* keys, std::uint64_t row, std::uint64_t number,
                               std::uint64_t slot) const {
    const std::uint64_t mine = of(depth(load(keys + row)) + 1, number);
    return mine < load(keys + slot) && depth(mine) < depth(take_min(keys + slot, mine));
  }

 private:
  int bits_;
};

}  // namespace plait
