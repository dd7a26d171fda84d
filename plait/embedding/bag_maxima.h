// The greatest numbers of the rows of bags, column by column, and their gradients, which go to the
// first place of a maximum, as with torch.nn.EmbeddingBag.
//
// A place is the number of an id in its bag. NaN is greater than all numbers.
#pragma once

#include "plait/base/host_device.h"
#include "plait/base/ids.h"
#include "plait/kernels/spmm.h"

namespace plait {

inline constexpr Slot kNoPlace = ~Slot{0};  // of a bag without ids

// A number of a row, and the place of the row.
struct Placed {
  float value = 0;
  Slot place = kNoPlace;

  // Takes another number if it is greater, or as great at an earlier place.
  PLAIT_HOST_DEVICE constexpr void take(const Placed& other) {
    const bool nan = value != value, other_nan = other.value != other.value;
    const bool greater = (other.value > value) | (other_nan & !nan);
    const bool equal = (other.value == value) | (other_nan & nan);
    const bool taken = (place == kNoPlace) | greater | (equal & (other.place < place));
    value = taken ? other.value : value;
    place = taken ? other.place : place;
  }
};

// As spmm(), but y_i is the maximum of rows columns_e, or 0 without edges. `places`: one per edge,
// or null if the edges are all ids of the bags. `found`: the places of the maxima, in rows like the
// rows of y. There are no weights, no scale and no peers.
void take_maxima(const SpmmArgs& args, const Slot* places, Slot* found);

// As spmm(), but an edge adds only the columns of row columns_e of x where the same row of `found`
// has the edge's place. `found` has rows of places like the rows of x.
void sum_maxima(const SpmmArgs& args, const Slot* places, const RowSource& found);

}  // namespace plait
