// Aggregation in two acts, for graphs whose rows do not fit in memory: block after block gives its
// rows away, and then block after block takes the sums over its neighbours from where all rows were
// put. A layer (nn/layers/layer.h) knows nothing of the acts: it is run on each block once in each
// act, and calls its Aggregator at the place where rows cross.
//
//   sending    own rows, scaled, go to a sink; then RowsSent is thrown, because the layer cannot
//              use sums yet.
//   receiving  own rows are left aside: the rows that were sent are read where they are stored.
//
// Forward only (backward() throws UsageError), on the CPU, and without dropout. Not collective.
#pragma once

#include <functional>
#include <memory>

#include "plait/aggregate/aggregate.h"
#include "plait/placement/row_block.h"

namespace plait {

// Thrown to leave a layer whose rows have been sent. It is not an error, so it has no base class.
struct RowsSent {};

// Called with the rows that a block sends, of `width` floats, without gaps. `rows` is the layer's
// own array unless rows are scaled.
using RowSink = std::function<void(const float* rows, std::uint64_t width)>;

// Rows `range` of a graph. `one_loop_each` is as in make_row_block(). The graph outlives this.
struct BlockOfGraph {
  const AnyCsr* graph;
  BlockRange range;
  bool one_loop_each;
};
// Returns an aggregator whose operations give the block's rows to `sink` and then throw RowsSent.
std::unique_ptr<Aggregator> make_sending_aggregator(const BlockOfGraph& block, RowSink sink);

// Returns an aggregator whose operations read the rows that all blocks have sent. `stored`: these
// rows by global vertex id, without gaps, of the width that the layer sends; they outlive the
// aggregator.
std::unique_ptr<Aggregator> make_receiving_aggregator(RowBlock block, const float* stored);

}  // namespace plait
