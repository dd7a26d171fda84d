// Columns of samples against loops over their hops.
#include "plait/sample/columns.h"

#include <gtest/gtest.h>

#include "tests/support/columns_case.h"
#include "tests/support/sample_case.h"

namespace plait::test {
namespace {

TEST(Columns, AreTheHopsOneAfterTheOther) {
  std::vector<SampleGraph> graphs = sample_graphs();
  graphs.emplace_back(csr_of_degrees(std::vector<std::uint64_t>(9000, 3), 4));  // more than a grain
  for (const SampleGraph& graph : graphs)
    for (const bool disjoint : {false, true})
      for (const std::vector<std::int64_t>& fanouts :
           {std::vector<std::int64_t>{}, {2}, {3, 2, 4}, {-1, -1}})
        for (const std::size_t batch : {0, 1, 6, 5000}) {
          const SampleSeeds seeds(vertex_count(AnyCsr(graph.graph)), batch, false);
          const Sample sample =
              sample_once(graph.graph, {.fanouts = fanouts, .disjoint = disjoint}, {}, seeds, 5);
          const Columns wanted = columns_of(sample);
          Columns found = unwritten(wanted);
          write_columns(sample, found.view());
          EXPECT_EQ(found, wanted);
          if (HasFailure()) return;
        }
}

}  // namespace
}  // namespace plait::test
