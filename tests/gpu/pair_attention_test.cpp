// Attention of pairs of rows on the GPU against the CPU's reference.
#include "plait/kernels/cuda/pair_attention.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "plait/base/error.h"
#include "tests/gpu/device_matrix.h"
#include "tests/support/pair_case.h"

namespace plait {
namespace {

using test::Cut;
using test::CutMatrix;
using test::expect_near;
using test::kPairShapes;
using test::pair_shape;
using test::PairCase;
using test::PairGradient;
using test::PairOut;
using test::random_both_ways;
using test::star_both_ways;

// Takes the arrays of an operation to the GPU, runs it there, and brings its results back.
struct OnGpu {
  explicit OnGpu(const PairCase& of) : c(of), ids(of.ids) {}

  const float* there(const std::vector<float>& values) { return held.emplace_back(values).data(); }
  float* results(std::size_t size) {
    return held.emplace_back(std::vector<float>(size, -7.0f)).data();
  }
  const float* factors() { return c.shape.score == PairScore::leaky ? there(c.f) : nullptr; }
  EdgeRows edges(const CutMatrix& matrix, const std::vector<float>& rows) {
    EdgeRows edges = matrix.edges();
    edges.x = {.base = there(rows), .stride = c.vertices > 0 ? rows.size() / c.vertices : 0};
    return edges;
  }
  AttentionDropout which_dropped() const {
    return {c.which_dropped().step, ids.data(), ids.data()};
  }
  std::vector<float> back(const float* results) const {
    for (const DeviceArray<float>& array : held)
      if (array.data() == results && results != nullptr) return array.to_host();
    return {};
  }

  PairOut forward(const Cut& cut, bool gradient = true) {
    const CutMatrix matrix(c.edges.graph, cut);
    const PairForward args{.edges = edges(matrix, c.x),
                           .shape = c.shape,
                           .dropout = which_dropped(),
                           .q = there(c.q),
                           .f = factors(),
                           .y = results(c.q.size()),
                           .norm = gradient ? results(c.vertices * c.shape.heads) : nullptr};
    test::apply_in_passes(args, matrix.passes.groups);
    return {back(args.y), back(args.norm)};
  }
  PairGradient gradient(const PairOut& out, const Cut& cut) {
    const std::vector<float> products = c.products(out);
    const CutMatrix matrix(c.edges.graph, cut), transposed(c.edges.transposed, cut);
    const bool leaky = c.shape.score == PairScore::leaky;
    const PairOwnGradient own{.edges = edges(matrix, c.x),
                              .shape = c.shape,
                              .dropout = which_dropped(),
                              .q = there(c.q),
                              .f = factors(),
                              .dy = there(c.dy),
                              .norm = there(out.norm),
                              .c = there(products),
                              .dq = results(c.q.size()),
                              .df = leaky ? results(c.q.size()) : nullptr};
    test::apply_in_passes(own, matrix.passes.groups);
    const PairBackward backward{.edges = edges(transposed, c.backward_rows(out, products, 4)),
                                .shape = c.shape,
                                .dropout = which_dropped(),
                                .p = there(c.p),
                                .v = there(c.v),
                                .f = factors(),
                                .dp = results(c.q.size()),
                                .dv = results(c.q.size())};
    test::apply_in_passes(backward, transposed.passes.groups);
    return {back(own.dq), back(own.df), back(backward.dp), back(backward.dv)};
  }

  const PairCase& c;
  DeviceArray<std::uint64_t> ids;
  std::deque<DeviceArray<float>> held;
};

void check(const PairCase& c, std::uint32_t most, double tolerance = 4e-6) {
  const PairOut expected = c.reference();
  const PairGradient wanted = c.reference_gradient();
  const double terms = 1 + std::sqrt(static_cast<double>(c.shape.features));
  tolerance *= terms / (1 - double{c.dropout.p()});
  for (const std::size_t passes : {1, 2, 5}) {
    SCOPED_TRACE(testing::Message()
                 << "heads " << c.shape.heads << " features " << c.shape.features << " score "
                 << static_cast<int>(c.shape.score) << " own values " << c.shape.own_values << " p "
                 << c.dropout.p() << " stride " << c.stride << " most " << most << " passes "
                 << passes);
    const double allowed = passes == 1 ? tolerance : 2 * tolerance;
    const Cut cut{most, passes};
    const PairOut out = OnGpu(c).forward(cut), inferred = OnGpu(c).forward(cut, false);
    expect_near(out.y, expected.y, c.edges.graph, allowed);
    expect_near(out.norm, expected.norm, c.edges.graph, allowed);
    expect_near(inferred.y, expected.y, c.edges.graph, allowed);
    const PairGradient gradient = OnGpu(c).gradient(expected, cut);
    expect_near(gradient.dq, wanted.dq, c.edges.graph, allowed * terms);
    if (c.shape.score == PairScore::leaky)
      expect_near(gradient.df, wanted.df, c.edges.graph, allowed * terms);
    expect_near(gradient.dp, wanted.dp, c.edges.transposed, allowed * terms);
    expect_near(gradient.dv, wanted.dv, c.edges.transposed, allowed * terms);
  }
}

// Rows have 30 and 300 edges, of which groups of 32 cut the most.
TEST(GpuPairAttention, AllShapesMatchTheReference) {
  const test::BothWays thin = random_both_ways(40, 1200, 2), thick = random_both_ways(20, 6000, 3);
  for (const PairShape& kind : kPairShapes)
    for (const std::uint64_t heads : {1, 3, 8, 33})
      for (const std::uint64_t features :
           {1, 2, 4, 7, 8, 12, 31, 32, 70, 128, 129, 256, 300, 512}) {
        if (heads * features > 1100) continue;
        check({thin, {.shape = pair_shape(kind, heads, features)}}, 2048);
        check({thick, {.shape = pair_shape(kind, heads, features), .p = 0.6f, .padding = 8}}, 32);
      }
}

TEST(GpuPairAttention, OddGraphs) {
  for (const PairShape& kind : kPairShapes)
    for (const std::uint32_t most : {32u, 2048u}) {
      const PairCase::Options options{.shape = pair_shape(kind, 3, 10), .p = 0.3f};
      check({random_both_ways(0, 0, 1), options}, most);
      check({random_both_ways(1, 0, 1), options}, most);
      check({random_both_ways(50, 0, 1), options}, most);
      check({random_both_ways(1, 1, 1), options}, most);     // one loop
      check({random_both_ways(1, 40, 1), options}, most);    // 40 parallel loops
      check({random_both_ways(3, 500, 1), options}, most);   // parallel edges
      check({random_both_ways(700, 50, 1), options}, most);  // most rows are empty
      for (const bool inwards : {false, true})
        check({star_both_ways(10001, inwards),
               {.shape = pair_shape(kind, 2, 9), .p = inwards ? 0.5f : 0.0f}},
              most);
    }
}

TEST(GpuPairAttention, LargeScores) {
  for (const PairShape& kind : kPairShapes)
    for (const std::uint32_t most : {32u, 2048u})
      check({random_both_ways(30, 3000, 2), {.shape = pair_shape(kind, 2, 5), .scores = 200}}, most,
            1e-4);
}

TEST(GpuPairAttention, ScoresOfMinusInfinityHaveNoWeight) {
  const PairCase c = test::masked_pair_case(), whole = test::wholly_masked_pair_case();
  const PairOut expected = c.reference();
  for (const std::size_t passes : {1, 2, 5})
    for (const std::uint32_t most : {32u, 2048u})
      for (const bool gradient : {false, true})
        expect_near(OnGpu(c).forward({most, passes}, gradient).y, expected.y, c.edges.graph, 1e-5);
  EXPECT_TRUE(std::isnan(OnGpu(whole).forward({}).y[0]));
  EXPECT_TRUE(std::isnan(OnGpu(whole).forward({}, false).y[0]));
  EXPECT_EQ(OnGpu(whole).forward({2048, 2}).y[0], 0);
}

TEST(GpuPairAttention, SameBitsEachTime) {
  for (const PairShape& kind : kPairShapes) {
    const PairCase c(random_both_ways(100, 30000, 5),
                     {.shape = pair_shape(kind, 4, 12), .p = 0.5f});
    const PairOut expected = c.reference();
    const Cut cut{.most = 64, .passes = 3};
    const PairOut first = OnGpu(c).forward(cut);
    const PairGradient first_gradient = OnGpu(c).gradient(expected, cut);
    for (int run = 1; run < 10; ++run) {
      const PairOut out = OnGpu(c).forward(cut);
      ASSERT_EQ(out.y, first.y);
      ASSERT_EQ(out.norm, first.norm);
      const PairGradient gradient = OnGpu(c).gradient(expected, cut);
      ASSERT_EQ(gradient.dq, first_gradient.dq);
      ASSERT_EQ(gradient.df, first_gradient.df);
      ASSERT_EQ(gradient.dp, first_gradient.dp);
      ASSERT_EQ(gradient.dv, first_gradient.dv);
    }
  }
}

TEST(GpuPairAttention, RefusesWhatItCannotDo) {
  const PairCase wide(random_both_ways(5, 9, 1), {.shape = pair_shape(kPairShapes[0], 1, 513)});
  EXPECT_THROW(OnGpu(wide).forward({}), UsageError);
  EXPECT_THROW(OnGpu(wide).gradient(wide.reference(), {}), UsageError);
}

}  // namespace
}  // namespace plait
