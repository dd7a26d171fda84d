#include "plait/graph/loops.h"

#include <gtest/gtest.h>

#include "plait/graph/validate.h"

namespace plait::test {
namespace {

template <class T>
std::vector<T> listed(const Array<T>& array) {
  return {array.begin(), array.end()};
}

TEST(Loops, AreTakenOutWithTheirWeights) {
  const Csr32 graph{std::vector<EdgeOffset>{0, 3, 3, 5}, std::vector<std::uint32_t>{0, 0, 2, 0, 2},
                    std::vector<float>{5, 6, 7, 8, 9}};
  const auto rest = std::get<Csr32>(without_loops(graph));
  EXPECT_EQ(listed(rest.offsets), (std::vector<EdgeOffset>{0, 1, 1, 2}));
  EXPECT_EQ(listed(rest.neighbours), (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(listed(rest.weights), (std::vector<float>{7, 8}));
  EXPECT_EQ(loop_weights(graph), (std::vector<float>{6, 1, 9}));  // the last one of each vertex
}

TEST(Loops, AreTakenOutWithValuesOfEdges) {
  const Csr32 graph{
      std::vector<EdgeOffset>{0, 3, 3, 5}, std::vector<std::uint32_t>{0, 0, 2, 0, 2}, {}};
  const Array<std::int64_t> values = std::vector<std::int64_t>{5, -6, 7, 8, -9};
  EXPECT_EQ(listed(without_loops(graph, values)), (std::vector<std::int64_t>{7, 8}));
  EXPECT_TRUE(without_loops(graph, Array<std::int64_t>()).empty());
  const Csr32 plain{std::vector<EdgeOffset>{0, 1, 1}, std::vector<std::uint32_t>{1}, {}};
  const Array<std::int64_t> one = std::vector<std::int64_t>{3};
  EXPECT_EQ(without_loops(plain, one).data(), one.data());
}

TEST(Loops, AGraphWithoutThemKeepsItsArrays) {
  const Csr64 graph{std::vector<EdgeOffset>{0, 1, 1}, std::vector<std::uint64_t>{1}, {}};
  const AnyCsr rest = without_loops(graph);
  EXPECT_EQ(std::get<Csr64>(rest).neighbours.data(), graph.neighbours.data());
  EXPECT_TRUE(loop_weights(graph).empty());
  const Csr64 none{std::vector<EdgeOffset>{0}, {}, {}};
  EXPECT_EQ(edge_count(without_loops(none)), 0u);
}

}  // namespace
}  // namespace plait::test
