// The graphs of the zoo: the same on every machine and for any number of threads, and refusals of
// the generators that only the zoo needs.
#include "plait/graph/zoo.h"

#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/graph/random_graphs.h"
#include "plait/graph/shapes.h"
#include "tests/support/edge_checksum.h"

namespace plait::test {
namespace {

TEST(Zoo, TheSameOnEveryMachineAndForAnyNumberOfThreads) {
  for (const int count : {1, 3}) {
    const ThreadCount threads(count);
    std::uint64_t all = 0;
    for (const ZooGraph& graph : zoo()) all = all * 31 + checksum(make(graph, 0.001));
    EXPECT_EQ(all, 2607925027595193260u) << count;
  }
}

TEST(Zoo, IdsAreVerticesOfTheGraph) {
  for (const ZooGraph& graph : zoo())
    std::visit(
        [&](const auto& list) {
          EXPECT_GT(list.edges(), 0u) << graph.name;
          EXPECT_LE(list.vertices, graph.vertices) << graph.name;
          for (std::size_t e = 0; e < list.edges(); ++e)
            ASSERT_LT(std::max(list.source[e], list.target[e]), list.vertices) << graph.name;
        },
        make(graph, 0.001));
}

TEST(Zoo, UnknownGraphsAndScalesAreRefused) {
  EXPECT_THROW(zoo_graph("unicorn"), UsageError);
  EXPECT_THROW(make(zoo_graph("grid"), 0), UsageError);
  EXPECT_THROW(make(zoo_graph("grid"), 1.5), UsageError);
}

TEST(Shapes, RefuseWhatMakesNoSense) {
  EXPECT_THROW(generate_path(0), UsageError);
  EXPECT_THROW(generate_tree(5, 0), UsageError);
  EXPECT_THROW(generate_cliques(0, 5), UsageError);
  EXPECT_THROW(generate_cliques(5, 0), UsageError);
  EXPECT_THROW(generate_cliques(std::uint64_t{1} << 30, std::uint64_t{1} << 30), UsageError);
  EXPECT_THROW(generate_path(std::uint64_t{1} << 45), DoesNotFitError);
}

TEST(RandomGraphs, RefuseWhatMakesNoSense) {
  EXPECT_THROW(generate_small_world({.vertices = 9, .degree = 3}), UsageError);
  EXPECT_THROW(generate_small_world({.vertices = 4, .degree = 4}), UsageError);
  EXPECT_THROW(generate_small_world({.vertices = 9, .degree = 2, .rewired = 1.5}), UsageError);
  EXPECT_THROW(generate_small_world({.vertices = 0}), UsageError);
  EXPECT_THROW(generate_bipartite({.vertices = 4, .left = 0, .edges = 2}), UsageError);
  EXPECT_THROW(generate_bipartite({.vertices = 4, .left = 4, .edges = 2}), UsageError);
  EXPECT_THROW(generate_bipartite({.vertices = 4, .left = 2, .edges = 3}), UsageError);
  EXPECT_THROW(generate_crawl({.vertices = 1, .edges = 2}), UsageError);
}

}  // namespace
}  // namespace plait::test
