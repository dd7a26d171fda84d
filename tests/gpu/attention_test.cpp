// Attention on the GPU against the CPU's reference.
#include "plait/kernels/cuda/attention.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plait/base/error.h"
#include "tests/gpu/device_matrix.h"
#include "tests/support/attention_case.h"

namespace plait {
namespace {

using test::AttentionCase;
using test::AttentionGradient;
using test::AttentionOut;
using test::Cut;
using test::CutMatrix;
using test::expect_near;
using test::random_both_ways;
using test::star_both_ways;

// Arrays on the GPU that stand behind arguments. Results are filled with a mark before.
struct OnGpu {
  explicit OnGpu(const AttentionCase& of)
      : c(of),
        x(c.x),
        t(c.t),
        h(c.h),
        s(c.s),
        ids(c.ids),
        wide(filled(c.vertices * c.shape.width())),
        second_wide(filled(c.vertices * c.shape.width())),
        narrow(filled(c.vertices * c.shape.heads)),
        second_narrow(filled(c.vertices * c.shape.heads)) {}

  static std::vector<float> filled(std::size_t size) { return std::vector<float>(size, -7.0f); }
  AttentionDropout which_dropped() const {
    return {c.which_dropped().step, ids.data(), ids.data()};
  }
  AttentionForward forward(const EdgeRows& edges, bool gradient = true) {
    AttentionForward args{.edges = edges,
                          .shape = c.shape,
                          .dropout = which_dropped(),
                          .t = t.data(),
                          .y = wide.data()};
    args.edges.x = {.base = x.data(), .stride = c.stride};
    if (!gradient) return args;
    args.u = second_wide.data();
    args.b = narrow.data();
    args.norm = second_narrow.data();
    return args;
  }
  AttentionOut out() const {
    return {wide.to_host(), second_wide.to_host(), narrow.to_host(), second_narrow.to_host()};
  }
  AttentionBackward backward(const EdgeRows& edges, const std::vector<float>& rows) {
    backward_x = DeviceArray<float>(rows);
    AttentionBackward args{.edges = edges,
                           .shape = c.shape,
                           .dropout = which_dropped(),
                           .h = h.data(),
                           .s = s.data(),
                           .h_stride = c.shape.width(),
                           .s_stride = c.shape.heads,
                           .dh = wide.data(),
                           .ds = narrow.data()};
    args.edges.x = {.base = backward_x.data(),
                    .stride = c.vertices > 0 ? rows.size() / c.vertices : 0};
    return args;
  }
  AttentionGradient gradient() const { return {wide.to_host(), narrow.to_host()}; }

  const AttentionCase& c;
  DeviceArray<float> x, t, h, s, backward_x;
  DeviceArray<std::uint64_t> ids;
  DeviceArray<float> wide, second_wide, narrow, second_narrow;
};

AttentionOut forward_on_gpu(const AttentionCase& c, const Cut& cut, bool gradient = true) {
  const CutMatrix matrix(c.edges.graph, cut);
  OnGpu gpu(c);
  test::apply_in_passes(gpu.forward(matrix.edges(), gradient), matrix.passes.groups);
  return gpu.out();
}

AttentionGradient backward_on_gpu(const AttentionCase& c, const std::vector<float>& rows,
                                  const Cut& cut) {
  const CutMatrix matrix(c.edges.transposed, cut);
  OnGpu gpu(c);
  test::apply_in_passes(gpu.backward(matrix.edges(), rows), matrix.passes.groups);
  return gpu.gradient();
}

// Returns the floats to the next multiple of 16 bytes.
std::uint64_t missing(std::uint64_t floats) { return (4 - floats % 4) % 4; }

// `expected`: the results of forward.
void check_cut(const AttentionCase& c, const AttentionOut& expected, const Cut& cut,
               double tolerance) {
  SCOPED_TRACE(testing::Message() << "heads " << c.shape.heads << " features " << c.shape.features
                                  << " slope " << c.shape.slope << " p " << c.dropout.p()
                                  << " stride " << c.stride << " most " << cut.most << " passes "
                                  << cut.passes);
  tolerance /= 1 - double{c.dropout.p()};
  const AttentionOut out = forward_on_gpu(c, cut);
  const Csr32& graph = c.edges.graph;
  expect_near(out.y, expected.y, graph, tolerance);
  expect_near(out.u, expected.u, graph, tolerance);
  expect_near(out.b, expected.b, graph, tolerance);
  expect_near(out.norm, expected.norm, graph, tolerance);
  const AttentionOut inferred = forward_on_gpu(c, cut, false);
  expect_near(inferred.y, expected.y, graph, tolerance);
  EXPECT_EQ(inferred.u, OnGpu::filled(inferred.u.size()));  // not touched

  // Rows are padded to stand on 16 bytes, and so that they do not.
  for (const std::uint64_t padding :
       {missing(c.shape.tail() + 3 * c.shape.heads), std::uint64_t{5}}) {
    const std::vector<float> rows = c.backward_rows(expected, padding);
    const AttentionGradient wanted = c.reference_gradient(rows),
                            gradient = backward_on_gpu(c, rows, cut);
    const double terms = 1 + std::sqrt(static_cast<double>(c.shape.features));
    expect_near(gradient.dh, wanted.dh, c.edges.transposed, tolerance);
    expect_near(gradient.ds, wanted.ds, c.edges.transposed, tolerance * terms);
  }
}

void check(const AttentionCase& c, std::uint32_t most, double tolerance = 4e-6) {
  const AttentionOut expected = c.reference();
  for (const std::size_t passes : {1, 2, 5})
    check_cut(c, expected, {most, passes}, passes == 1 ? tolerance : 2 * tolerance);
}

// Rows have 30 and 300 edges, of which groups of 32 cut the most; x stands on 16 bytes and not.
TEST(GpuAttention, AllShapesMatchTheReference) {
  const test::BothWays thin = random_both_ways(40, 1200, 2), thick = random_both_ways(20, 6000, 3);
  for (const std::uint64_t heads : {1, 2, 3, 4, 5, 8, 16, 32})
    for (const std::uint64_t features : {1, 2, 3, 4, 7, 8, 12, 16, 31, 32, 64, 70, 128, 256}) {
      if (heads * features > 1024) continue;
      const AttentionShape shape{heads, features, 0.2f};
      const std::uint64_t padding = missing(shape.tail() + shape.heads);
      check({thin, {.shape = shape, .padding = padding}}, 2048);
      check({thick, {.shape = shape, .p = 0.6f, .padding = padding}}, 32);
      check({thin, {.shape = shape, .p = 0.6f, .padding = 1}}, 2048);
    }
  for (const float slope : {0.0f, 0.2f, 1.0f})
    for (const float p : {0.0f, 0.6f})
      for (const std::uint32_t most : {32u, 2048u})
        check({thick, {.shape = {2, 12, slope}, .p = p, .padding = 2}}, most);
}

// Rows are padded as in slots, as aggregation has them.
TEST(GpuAttention, AllWidthsOfRowsInSlots) {
  const test::BothWays graph = random_both_ways(30, 2000, 4);
  for (std::uint64_t features = 1; features <= 130; ++features)
    for (const std::uint64_t heads : {1, 3}) {
      const AttentionShape shape{heads, features, 0.2f};
      check({graph,
             {.shape = shape,
              .p = features % 2 == 0 ? 0.6f : 0.0f,
              .padding = shape.forward_width() - shape.tail() - heads}},
            features % 3 == 0 ? 32 : 2048);
    }
}

TEST(GpuAttention, OddGraphs) {
  const AttentionCase::Options options{.shape = {3, 8, 0.2f}, .p = 0.3f, .padding = 5};
  for (const std::uint32_t most : {32u, 2048u}) {
    check({random_both_ways(0, 0, 1), options}, most);
    check({random_both_ways(1, 0, 1), options}, most);
    check({random_both_ways(50, 0, 1), options}, most);
    check({random_both_ways(1, 1, 1), options}, most);     // one loop
    check({random_both_ways(1, 40, 1), options}, most);    // 40 parallel loops
    check({random_both_ways(3, 500, 1), options}, most);   // parallel edges
    check({random_both_ways(700, 50, 1), options}, most);  // most rows are empty
    for (const bool inwards : {false, true})
      for (const float scores : {1.0f, 30.0f})
        check({star_both_ways(10001, inwards),
               {.shape = {2, 9, 0.2f}, .p = inwards ? 0.5f : 0.0f, .scores = scores}},
              most, 4e-6 * double{scores});
  }
}

TEST(GpuAttention, LargeScores) {
  for (const float scores : {100.0f, 1000.0f})
    for (const std::uint32_t most : {32u, 2048u})
      check(
          {random_both_ways(30, 3000, 2), {.shape = {2, 4, 0.2f}, .padding = 2, .scores = scores}},
          most, 4e-7 * double{scores});
}

// Passes whose edges are all masked come before and after others.
TEST(GpuAttention, ScoresOfMinusInfinityHaveNoWeight) {
  AttentionCase c(random_both_ways(30, 400, 6), {.shape = {2, 4, 0.2f}, .padding = 2});
  for (std::uint64_t vertex = 0; vertex < 10; ++vertex)
    for (std::uint64_t head = 0; head < c.shape.heads; ++head)
      c.x[vertex * c.stride + c.shape.tail() + head] = -std::numeric_limits<float>::infinity();
  c.take_own();
  for (const std::uint32_t most : {32u, 2048u}) check(c, most);
}

TEST(GpuAttention, SameBitsEachTime) {
  const AttentionCase c(random_both_ways(100, 30000, 5), {.shape = {4, 12, 0.2f}, .p = 0.5f});
  const std::vector<float> rows = c.backward_rows(c.reference());
  const Cut cut{.most = 64, .passes = 3};
  const AttentionOut first = forward_on_gpu(c, cut);
  const AttentionGradient first_gradient = backward_on_gpu(c, rows, cut);
  for (int run = 1; run < 20; ++run) {
    const AttentionOut out = forward_on_gpu(c, cut);
    ASSERT_EQ(out.y, first.y);
    ASSERT_EQ(out.u, first.u);
    ASSERT_EQ(out.b, first.b);
    ASSERT_EQ(out.norm, first.norm);
    const AttentionGradient gradient = backward_on_gpu(c, rows, cut);
    ASSERT_EQ(gradient.dh, first_gradient.dh);
    ASSERT_EQ(gradient.ds, first_gradient.ds);
  }
}

TEST(GpuAttention, RefusesWhatItCannotDo) {
  const AttentionCase many(random_both_ways(5, 9, 1), {.shape = {33, 1, 0.2f}});
  EXPECT_THROW(forward_on_gpu(many, {}), UsageError);
  EXPECT_THROW(backward_on_gpu(many, many.backward_rows(many.reference()), {}), UsageError);
  const AttentionCase c(random_both_ways(5, 9, 1), {.shape = {1, 1, 0.2f}});
  const CutMatrix matrix(c.edges.graph, {});
  OnGpu gpu(c);
  AttentionForward args = gpu.forward(matrix.edges());
  const float* peer = nullptr;
  args.edges.x.peers = &peer;
  EXPECT_THROW(apply(args, EdgePass{matrix.passes.groups}, nullptr, nullptr), UsageError);
}

}  // namespace
}  // namespace plait
