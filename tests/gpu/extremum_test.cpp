// The extremum over neighbours on the GPU against the CPU's reference: equal, not close.
#include "plait/kernels/cuda/extremum.cuh"

#include <gtest/gtest.h>

#include "tests/gpu/device_matrix.h"
#include "tests/support/extremum_case.h"

namespace plait {
namespace {

using test::ExtremumCase;
using test::random_both_ways;
using test::same_values;
using test::star_both_ways;

struct Results {
  std::vector<float> y, ties, dx;
};

// The arguments of the CPU, with arrays on the GPU; y, ties and dx are filled with a mark.
struct OnGpu {
  OnGpu(const ExtremumCase& c, const std::vector<float>& rows)
      : x(c.x),
        own(c.own_rows()),
        backward_x(rows),
        y(std::vector<float>(c.vertices * c.width, -7)),
        ties(std::vector<float>(c.vertices * c.width, -7)),
        dx(std::vector<float>(c.vertices * c.width, -7)),
        width(c.width),
        stride(c.stride),
        backward_stride(c.vertices > 0 ? rows.size() / c.vertices : 0),
        which(c.which) {}

  ExtremumForward forward(EdgeRows edges) {
    edges.x = {.base = x.data(), .stride = stride};
    return {edges, width, y.data(), with_ties ? ties.data() : nullptr, which};
  }
  ExtremumBackward backward(EdgeRows edges) {
    edges.x = {.base = backward_x.data(), .stride = backward_stride};
    return {edges, width, own.data(), dx.data()};
  }
  Results results() const { return {y.to_host(), ties.to_host(), dx.to_host()}; }

  DeviceArray<float> x, own, backward_x, y, ties, dx;
  std::uint64_t width, stride, backward_stride;
  Extremum which;
  bool with_ties = true;
};

Results reference(const ExtremumCase& c, std::vector<float>& rows, std::uint64_t padding) {
  Results r;
  apply_reference(c.forward(r.y, r.ties));
  rows = c.backward_rows(r.y, padding);
  apply_reference(c.backward(rows, c.own_rows(), r.dx));
  return r;
}

void expect_same(const Results& results, const Results& expected) {
  EXPECT_TRUE(same_values(results.y, expected.y));
  EXPECT_EQ(results.ties, expected.ties);
  EXPECT_EQ(results.dx, expected.dx);
}

// `padding`: of rows of [y | dy].
void check_one(const ExtremumCase& c, std::uint32_t most, std::uint64_t padding) {
  std::vector<float> rows;
  const Results expected = reference(c, rows, padding);
  for (const std::size_t passes : {1, 2, 5}) {
    SCOPED_TRACE(testing::Message()
                 << c.vertices << " vertices, width " << c.width << " stride " << c.stride
                 << " most " << most << " padding " << padding << " passes " << passes);
    OnGpu gpu(c, rows);
    const auto with = [&](const Csr32& graph, auto&& operation_of) {
      const test::DeviceCsr csr(graph);
      const test::DevicePasses cut(graph, csr, most, passes);
      test::apply_in_passes(
          operation_of(
              EdgeRows{{csr.begin(), csr.rows}, {csr.end(), csr.rows}, csr.columns.data(), {}}),
          cut.groups);
    };
    with(c.edges.graph, [&](const EdgeRows& edges) { return gpu.forward(edges); });
    with(c.edges.transposed, [&](const EdgeRows& edges) { return gpu.backward(edges); });
    expect_same(gpu.results(), expected);
    OnGpu alone(c, rows);
    alone.with_ties = false;
    with(c.edges.graph, [&](const EdgeRows& edges) { return alone.forward(edges); });
    EXPECT_TRUE(same_values(alone.results().y, expected.y));
    EXPECT_EQ(alone.results().ties, std::vector<float>(expected.ties.size(), -7));
  }
}

void check(const ExtremumCase& c, std::uint32_t most, std::uint64_t padding = 0) {
  for (const Extremum which : {Extremum::greatest, Extremum::least})
    check_one(c.of(which), most, padding);
}

TEST(GpuExtremum, AllWidthsMatchTheReference) {
  const test::BothWays thin = random_both_ways(40, 1200, 2), thick = random_both_ways(20, 6000, 3);
  for (const std::uint64_t width :
       {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 31, 32, 33, 40, 64, 65, 100, 128, 130, 256, 300})
    for (const bool odd_values : {false, true}) {
      const std::uint64_t to_four = (4 - width % 4) % 4;
      check({thin, width, to_four, odd_values}, 2048);
      check({thin, width, 0, odd_values}, 2048, 3);
      check({thick, width, to_four, odd_values}, 32);
      check({thick, width, 1, odd_values}, 32, 4);
    }
}

// Rows are padded as in slots, as aggregation has them.
TEST(GpuExtremum, AllWidthsOfRowsInSlots) {
  const test::BothWays graph = random_both_ways(30, 2000, 4);
  for (std::uint64_t width = 1; width <= 130; ++width)
    check({graph, width, row_stride(width) - width, width % 2 == 0}, width % 3 == 0 ? 32 : 2048);
}

TEST(GpuExtremum, OddGraphs) {
  for (const std::uint32_t most : {32u, 2048u})
    for (const bool odd_values : {false, true}) {
      check({random_both_ways(0, 0, 1), 5, 0, odd_values}, most);
      check({random_both_ways(50, 0, 1), 5, 0, odd_values}, most);
      check({random_both_ways(1, 1, 1), 5, 0, odd_values}, most);
      check({random_both_ways(3, 500, 1), 8, 0, odd_values}, most);
      check({random_both_ways(700, 50, 1), 8, 0, odd_values}, most);
      check({random_both_ways(9, 50, 1), 0, 4, odd_values}, most);
      for (const bool inwards : {false, true})
        for (const std::uint64_t width : {12, 13})
          check({star_both_ways(10001, inwards), width, 0, odd_values}, most);
    }
}

}  // namespace
}  // namespace plait
