#include "plait/sample/columns.h"

#include <algorithm>

#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kTargetGrain = 2048;

// One pass for all columns of edges. `before`: the edges of the hops before.
void write_hop(const Sample::Hop& hop, std::size_t before, const SampleColumns& to) {
  std::int64_t* const row = to.row + before;
  std::int64_t* const col = to.col + before;
  std::int64_t* const edge = to.edge + before;
  parallel_blocks(hop.targets(), kTargetGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t)
      std::fill(col + hop.offsets[t], col + hop.offsets[t + 1],
                static_cast<std::int64_t>(hop.first_target + t));
    for (std::size_t i = hop.offsets[begin]; i < hop.offsets[end]; ++i) {
      row[i] = hop.neighbours[i];
      edge[i] = static_cast<std::int64_t>(hop.edges[i]);
    }
  });
}

}  // namespace

void write_columns(const Sample& sample, const SampleColumns& to) {
  std::size_t before = 0;
  for (const Sample::Hop& hop : sample.hops) {
    write_hop(hop, before, to);
    before += hop.edges.size();
  }
  std::ranges::copy(sample.vertices, to.node);
  if (to.tree != nullptr) std::ranges::copy(sample.trees, to.tree);
}

}  // namespace plait
