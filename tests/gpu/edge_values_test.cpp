// Values of edges on the GPU against the CPU's reference.
#include "plait/kernels/cuda/edge_values.h"

#include <gtest/gtest.h>

#include "tests/gpu/device_matrix.h"
#include "tests/support/edge_values_case.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using test::EdgeOperationKind;
using test::EdgeValuesCase;
using test::random_both_ways;
using test::star_both_ways;

// The arrays of a case on the GPU. `shift`: floats by which rows stand behind a multiple of 16
// bytes.
struct OnGpu {
  explicit OnGpu(const EdgeValuesCase& c, std::size_t shift)
      : csr(c.graph),
        groups(csr.begin(), csr.rows, c.place.size(), nullptr),
        place(c.place),
        a(shifted(c.a, shift)),
        b(shifted(c.b, shift)),
        m(shifted(c.m, shift)),
        factor(shifted(c.factor, shift)),
        weights(c.weights),
        z(c.z),
        dp(c.dp),
        by(shift) {}

  static std::vector<float> shifted(const std::vector<float>& values, std::size_t by) {
    std::vector<float> all(by);
    all.insert(all.end(), values.begin(), values.end());
    return all;
  }
  EdgeRows edges(std::uint64_t width) const {
    return {.begin = {csr.begin(), csr.rows},
            .end = {csr.end(), csr.rows},
            .columns = csr.columns.data(),
            .x = {.base = b.data() + by, .stride = width}};
  }
  std::vector<float> run(const EdgeValuesCase& c, EdgeOperationKind kind, EdgeValues args) const {
    args.edges = edges(args.width());
    args.place = place.data();
    args.a = a.data() + by;
    args.factor = factor.data() + by;
    if (args.m != nullptr) args.m = m.data() + by;
    if (args.weights != nullptr) args.weights = weights.data();
    DeviceArray<float> out(std::vector<float>(c.size_of_result(kind), -7));
    DeviceArray<float> scratch(groups.scratch_of_sums(args.width()));
    if (kind == EdgeOperationKind::scores)
      groups.scores(args, out.data(), nullptr);
    else if (kind == EdgeOperationKind::sums)
      groups.sums(args, out.data(), scratch.data(), nullptr);
    else
      groups.rows(args, out.data(), nullptr);
    return out.to_host();
  }
  std::vector<float> softmax(EdgeSoftmax args) const {
    args.edges = edges(0);
    args.place = place.data();
    args.z = z.data();
    if (args.dp != nullptr) args.dp = dp.data();
    DeviceArray<float> out(std::vector<float>(z.size(), -7));
    DeviceArray<float> scratch(groups.scratch_of_softmax(args.heads));
    groups.softmax(args, out.data(), scratch.data(), nullptr);
    return out.to_host();
  }

  test::DeviceCsr csr;
  GpuEdgeGroups groups;
  DeviceArray<std::uint32_t> place;
  DeviceArray<float> a, b, m, factor, weights, z, dp;
  std::size_t by;
};

void expect_matches_reference(const Csr32& graph, std::uint64_t heads, std::uint64_t features,
                              std::size_t shift = 0) {
  const EdgeValuesCase c(graph, heads, features);
  const OnGpu gpu(c, shift);
  compare_edge_values(
      c, [&](EdgeOperationKind kind, const EdgeValues& args) { return gpu.run(c, kind, args); },
      [&](const EdgeSoftmax& args) { return gpu.softmax(args); },
      [&](const std::string& what) { ADD_FAILURE() << what << ", shift " << shift; });
}

TEST(GpuEdgeValues, AllShapesMatchTheReference) {
  const test::BothWays graph = random_both_ways(40, 300, 2);
  for (const std::uint64_t heads : {1, 2, 3, 9, 40})
    for (const std::uint64_t features : {1, 2, 4, 7, 8, 12, 31, 32, 64, 100, 129, 260})
      expect_matches_reference(graph.graph, heads, features);
  for (const std::uint64_t features : {4, 8, 64})
    expect_matches_reference(graph.graph, 2, features, 1);
}

TEST(GpuEdgeValues, OddGraphs) {
  for (const auto& [vertices, edges] : {std::pair{0, 0}, {50, 0}, {1, 1}, {3, 500}, {700, 50}}) {
    const test::BothWays graph = random_both_ways(vertices, edges, 1);
    expect_matches_reference(graph.graph, 2, 5);
  }
}

TEST(GpuEdgeValues, RowsThatAreCut) {
  for (const std::uint64_t vertices : {65, 4097, 300000})
    for (const bool inwards : {false, true}) {
      const test::BothWays star = star_both_ways(vertices, inwards);
      expect_matches_reference(star.graph, 2, 4);
      expect_matches_reference(star.graph, 1, 7);
    }
  const test::BothWays dense = random_both_ways(30, 60000, 5);
  expect_matches_reference(dense.graph, 4, 16);
}

TEST(GpuEdgeValues, BitsAreTheSameEachTime) {
  const test::BothWays graph = random_both_ways(300, 90000, 3);
  const EdgeValuesCase c(graph.graph, 2, 13);
  const OnGpu gpu(c, 0);
  for (const auto& [kind, term] : test::kEdgeOperationTerms) {
    const EdgeValues args = c.values(term, true, true);
    EXPECT_EQ(gpu.run(c, kind, args), gpu.run(c, kind, args));
  }
  EXPECT_EQ(gpu.softmax(c.softmax(false)), gpu.softmax(c.softmax(false)));
}

}  // namespace
}  // namespace plait
