// Samples by values, for the numbers of edges from which each hop was drawn.
#pragma once

#include "plait/sample/eligible_edges.h"
#include "tests/support/sample_case.h"

namespace plait::test {

// The numbers of one hop.
struct EligibleNumbers {
  std::vector<std::uint64_t> counts;
  std::vector<float> means;

  explicit EligibleNumbers(std::uint64_t targets) : counts(targets), means(targets) {}
  EligibleArrays arrays() { return {counts.data(), means.data()}; }
};

// Calls use(graph, kind, fanouts) for graphs of all shapes and all kinds of draws by values.
template <class Use>
void for_draws_by_values(Use use) {
  for (const SampleGraph& graph : sample_graphs())
    for (const SampleKind& kind : sample_kinds())
      if (kind.weighted || kind.timed()) use(graph, kind, std::vector<std::int64_t>{3, -1, 2});
}

}  // namespace plait::test
