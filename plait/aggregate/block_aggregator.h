// Aggregation in two acts, for graphs whose rows do not fit in memory: block after block gives its
// rows away, and then block after block takes the sums over its neighbours from where all rows were
// put. A layer (nn/layer.h) knows nothing of it: it is run on each block once in each act, and
// calls its Aggregator at the place where rows cross.
//
//   sending    own rows, scaled, go to a sink; then RowsSent is thrown, because the layer cannot
//              use sums yet.
//   receiving  own rows are left aside: what was sent is read where it is stored.
//
// Forward only, on the CPU, and without dropout.
#pragma once

#include <functional>
#include <memory>

#include "plait/aggregate/aggregate.h"
#include "plait/placement/row_block.h"

namespace plait {

// Leaves a layer whose rows have been sent. No error, so not one of their classes.
struct RowsSent {};

// Called with the rows that a block sends, of `width` floats, without gaps: the layer's own array
// where they are not scaled.
using RowSink = std::function<void(const float* rows, std::uint64_t width)>;

// A sender for rows `range` of a graph, whose loops are as in make_row_block().
struct BlockOfGraph {
  const AnyCsr* graph;
  BlockRange range;
  bool one_loop_each;
};
std::unique_ptr<Aggregator> make_sending_aggregator(const BlockOfGraph& block, RowSink sink);

// A receiver for a block. `stored`: what all blocks have sent, by vertex, rows of the width that
// the layer sends.
std::unique_ptr<Aggregator> make_receiving_aggregator(RowBlock block, const float* stored);

}  // namespace plait
