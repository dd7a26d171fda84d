// Operations over the edges of one hop of a sample (sample/neighbours.h), within this process and
// on the CPU. Rows that edges read are all here: own rows, of the hop's targets, come first among
// them.
#pragma once

#include <memory>
#include <vector>

#include "plait/aggregate/aggregate.h"

namespace plait {

// The edges of own rows, offsets[i] .. offsets[i + 1] - 1 of row i.
struct SampledEdges {
  std::vector<EdgeOffset> offsets{0};  // own rows + 1
  std::vector<Slot> sources;           // one per edge, below `inputs`
  std::vector<float> weights;          // one per edge, or empty: every edge weighs 1
  std::uint64_t inputs = 0;            // rows that edges read, own rows included
  // The number of each input's vertex, which keys the dropout of attention; or empty.
  std::vector<std::uint64_t> vertices;
};

// Returns an aggregator of these edges. None of its calls is collective.
std::unique_ptr<Aggregator> make_sample_aggregator(SampledEdges edges);

}  // namespace plait
