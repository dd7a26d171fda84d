#include "plait/sample/neighbours.h"

#include <gtest/gtest.h>

#include "plait/base/parallel.h"
#include "tests/support/sample_case.h"

namespace plait::test {
namespace {

const std::vector<std::vector<std::int64_t>> kFanouts = {{},         {1},      {3, 2},   {-1},
                                                         {2, -1, 3}, {63, 64}, {300, 5}, {8, 8, 8}};

TEST(NeighbourSampler, EqualsReference) {
  std::uint64_t key = 7;
  for (const SampleGraph& graph : sample_graphs())
    for (const SampleKind& kind : sample_kinds()) {
      const auto& fanouts = kFanouts[key % kFanouts.size()];
      SCOPED_TRACE(kind.name() + ", " + std::to_string(graph.graph.vertices()) + " vertices, key " +
                   std::to_string(key));
      const SampleSeeds seeds(graph.graph.vertices(), key % 5 * 2, kind.timed());
      const AnyCsr csr = graph.with_ids_of(key % 2 == 0);
      const SampleSettings settings = kind.settings(fanouts);
      const SampleValues values = kind.values(graph);
      expect_equal(sample_once(csr, settings, values, seeds, key),
                   sample_neighbours_reference(csr, settings, values, seeds.ids, key, seeds.times));
      ++key;
    }
}

// Hops of thousands of targets are drawn by all threads. Sizes of rows are on both sides of the
// bound between numbers of 32 and 64 bits.
TEST(NeighbourSampler, DoesNotDependOnThreads) {
  std::vector<std::uint64_t> degrees(3000, 9);
  degrees[0] = 70000, degrees[1] = 65536, degrees[2] = 65537;
  const SampleGraph graph(csr_of_degrees(degrees, 3));
  for (const SampleKind& kind : sample_kinds()) {
    SCOPED_TRACE(kind.name());
    SampleSeeds seeds(3000, 200, kind.timed());
    for (std::uint64_t v = 0; v < 3; ++v) seeds.ids[v] = v;
    const SampleSettings settings = kind.settings({40, 5, 3});
    const SampleValues values = kind.values(graph);
    const auto sample = [&](int threads) {
      const ThreadCount count(threads);
      return sample_once(graph.graph, settings, values, seeds, 3);
    };
    const Sample one = sample(1);
    expect_equal(sample(2), one);
    expect_equal(sample(3), one);
    expect_equal(
        one, sample_neighbours_reference(graph.graph, settings, values, seeds.ids, 3, seeds.times));
  }
}

}  // namespace
}  // namespace plait::test
