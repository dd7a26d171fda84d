// Attention of pairs of rows against its reference, and the reference against values known by hand
// and against finite differences.
#include "plait/kernels/pair_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "tests/support/pair_case.h"

namespace plait {
namespace {

using test::expect_near;
using test::kPairShapes;
using test::pair_shape;
using test::PairCase;
using test::PairGradient;
using test::PairOut;
using test::random_both_ways;
using test::star_both_ways;

PairGradient gradient_of(const PairCase& c, std::uint64_t padding = 0) {
  PairGradient gradient;
  const PairOut out = c.reference();
  const std::vector<float> products = c.products(out);
  apply(c.own_gradient(out, products, gradient));
  apply(c.backward(c.backward_rows(out, products, padding), gradient));
  return gradient;
}

void expect_matches_reference(const PairCase& c, double tolerance = 4e-6) {
  SCOPED_TRACE(testing::Message() << "heads " << c.shape.heads << " features " << c.shape.features
                                  << " score " << static_cast<int>(c.shape.score) << " own values "
                                  << c.shape.own_values << " p " << c.dropout.p());
  tolerance *= (1 + std::sqrt(static_cast<double>(c.shape.features))) / (1 - double{c.dropout.p()});
  const PairOut expected = c.reference();
  PairOut out, inferred;
  apply(c.forward(out));
  apply(c.forward(inferred, false));
  expect_near(out.y, expected.y, c.edges.graph, tolerance);
  expect_near(inferred.y, expected.y, c.edges.graph, tolerance);
  expect_near(out.norm, expected.norm, c.edges.graph, tolerance);
  const PairGradient wanted = c.reference_gradient(), gradient = gradient_of(c, 3);
  tolerance *= 1 + std::sqrt(static_cast<double>(c.shape.features));
  expect_near(gradient.dq, wanted.dq, c.edges.graph, tolerance);
  if (c.shape.score == PairScore::leaky)
    expect_near(gradient.df, wanted.df, c.edges.graph, tolerance);
  expect_near(gradient.dp, wanted.dp, c.edges.transposed, tolerance);
  expect_near(gradient.dv, wanted.dv, c.edges.transposed, tolerance);
}

// Values are compared, so that it is seen when all are wrong alike. Vertex 0 reads 1 and 2.
TEST(PairAttention, ProductsByHand) {
  PairCase c(test::BothWays(3, {{1, 0, 1}, {2, 0, 1}}),
             {.shape = {1, 1, PairScore::product, true}});
  c.q = {0.5f, 9, 9}, c.p = {9, 2 * std::log(3.0f), 0}, c.v = {9, 8, 4};  // weights 3/4 and 1/4
  c.dy = {10, 9, 9};
  c.lay_rows();
  const auto near = [](std::vector<float> expected) {
    return testing::Pointwise(testing::FloatNear(1e-4f), expected);
  };
  PairOut out;
  apply(c.forward(out));
  EXPECT_THAT(out.y, near({7, 0, 0}));
  EXPECT_THAT(out.norm, near({std::log(4.0f), 0, 0}));
  // g = a (dy v - c): 3/4 (80 - 70) and 1/4 (40 - 70)
  const PairGradient gradient = gradient_of(c);
  EXPECT_THAT(gradient.dq, near({7.5f * 2 * std::log(3.0f), 0, 0}));
  EXPECT_THAT(gradient.dp, near({0, 3.75f, -3.75f}));
  EXPECT_THAT(gradient.dv, near({0, 7.5f, 2.5f}));
}

TEST(PairAttention, LeakyScoresByHand) {
  PairCase c(test::BothWays(3, {{1, 0, 1}, {2, 0, 1}}),
             {.shape = {1, 1, PairScore::leaky, true, 0.5f}});
  c.f = {2}, c.q = {1, 9, 9}, c.p = {9, 2, -3}, c.v = {9, 8, 4};  // scores 2 * 3 and 2 * -1
  c.dy = {10, 9, 9};
  c.lay_rows();
  const float a = 1 / (1 + std::exp(-8.0f)), b = 1 - a, y = 8 * a + 4 * b;
  const auto near = [](std::vector<float> expected) {
    return testing::Pointwise(testing::FloatNear(1e-5f), expected);
  };
  PairOut out;
  apply(c.forward(out));
  EXPECT_THAT(out.y, near({y, 0, 0}));
  const float g1 = a * (80 - 10 * y), g2 = b * (40 - 10 * y);
  const PairGradient gradient = gradient_of(c);
  EXPECT_THAT(gradient.dq, near({2 * g1 + g2, 0, 0}));
  EXPECT_THAT(gradient.df, near({3 * g1 - g2, 0, 0}));
  EXPECT_THAT(gradient.dp, near({0, 2 * g1, g2}));
}

// Gradients are compared with the derivative of the sum of dy y for each q, f, p and v.
TEST(PairAttention, ReferenceGradientsAreFiniteDifferences) {
  for (const PairShape& kind : kPairShapes)
    for (const float dropped : {0.0f, 0.4f}) {
      PairCase c(random_both_ways(9, 40, 5), {.shape = pair_shape(kind, 3, 2), .p = dropped});
      // p are eighths, q are sixteenths off: no argument of leaky_relu is near its kink.
      for (float& value : c.p) value = std::round(value * 8) / 8;
      for (float& value : c.q) value = std::round(value * 8) / 8 + 1.0f / 16;
      if (!kind.own_values) c.v = c.p;
      c.lay_rows();
      const PairGradient gradient = c.reference_gradient();
      const auto loss = [&] {
        c.lay_rows();
        const PairOut now = c.reference();
        double sum = 0;
        for (std::size_t i = 0; i < now.y.size(); ++i) sum += double{c.dy[i]} * double{now.y[i]};
        return sum;
      };
      const auto difference = [&](float& input) {
        constexpr float kStep = 1.0f / 64;
        const float before = input;
        input = before + kStep;
        const double step_up = double{input}, up = loss();
        input = before - kStep;
        const double step = step_up - double{input}, down = loss();
        input = before;
        return (up - down) / step;
      };
      for (std::size_t i = 0; i < c.q.size(); ++i) {
        ASSERT_NEAR(gradient.dq[i], difference(c.q[i]), 1e-3);
        ASSERT_NEAR(gradient.dp[i] + (kind.own_values ? 0 : gradient.dv[i]), difference(c.p[i]),
                    1e-3);
        if (kind.own_values) {
          ASSERT_NEAR(gradient.dv[i], difference(c.v[i]), 1e-3);
        }
      }
      if (kind.score == PairScore::product) continue;
      for (std::size_t column = 0; column < c.f.size(); ++column) {
        double sum = 0;
        for (std::size_t i = column; i < c.q.size(); i += c.f.size()) sum += double{gradient.df[i]};
        ASSERT_NEAR(sum, difference(c.f[column]), 1e-3);
      }
    }
}

TEST(PairAttention, AllShapesMatchTheReference) {
  const test::BothWays graph = random_both_ways(40, 300, 2);
  for (const PairShape& kind : kPairShapes)
    for (const std::uint64_t heads : {1, 3, 8})
      for (const std::uint64_t features : {1, 3, 8, 9, 33, 70})
        for (const float p : {0.0f, 0.6f})
          expect_matches_reference(
              {graph,
               {.shape = pair_shape(kind, heads, features), .p = p, .padding = features % 5}});
}

TEST(PairAttention, OddGraphs) {
  for (const PairShape& kind : kPairShapes) {
    const PairCase::Options options{.shape = pair_shape(kind, 3, 10), .p = 0.3f};
    expect_matches_reference({random_both_ways(0, 0, 1), options});
    expect_matches_reference({random_both_ways(1, 0, 1), options});
    expect_matches_reference({random_both_ways(50, 0, 1), options});
    expect_matches_reference({random_both_ways(1, 1, 1), options});     // one loop
    expect_matches_reference({random_both_ways(1, 40, 1), options});    // 40 parallel loops
    expect_matches_reference({random_both_ways(3, 500, 1), options});   // parallel edges
    expect_matches_reference({random_both_ways(700, 50, 1), options});  // most rows are empty
  }
}

// Long rows are cut in pieces: rows have about the size at which they are cut, and several times
// it.
TEST(PairAttention, Hubs) {
  for (const PairShape& kind : kPairShapes)
    for (const std::uint64_t vertices : {4097, 9001})
      for (const bool inwards : {false, true})
        expect_matches_reference({star_both_ways(vertices, inwards),
                                  {.shape = pair_shape(kind, 2, 9), .p = inwards ? 0.5f : 0.0f}});
}

// exp of these scores is infinite, or 0, where the greatest is not subtracted.
TEST(PairAttention, LargeScores) {
  for (const PairShape& kind : kPairShapes)
    expect_matches_reference(
        {random_both_ways(30, 3000, 2), {.shape = pair_shape(kind, 2, 5), .scores = 200}}, 1e-4);
}

TEST(PairAttention, ScoresOfMinusInfinityHaveNoWeight) {
  const PairCase c = test::masked_pair_case();
  PairOut out;
  apply(c.forward(out));
  expect_near(out.y, c.reference().y, c.edges.graph, 1e-5);
  apply(test::wholly_masked_pair_case().forward(out));
  EXPECT_TRUE(std::isnan(out.y[0]));
  EXPECT_EQ(out.y[1], 0);
}

TEST(PairAttention, BitsDoNotDependOnThreads) {
  const int before = omp_get_max_threads();
  for (const PairShape& kind : kPairShapes) {
    const PairCase c(star_both_ways(9001, true), {.shape = pair_shape(kind, 2, 9), .p = 0.3f});
    std::vector<PairOut> outs(2);
    std::vector<PairGradient> gradients;
    for (int i = 0; i < 2; ++i) {
      omp_set_num_threads(i == 0 ? 1 : 3);
      apply(c.forward(outs[static_cast<std::size_t>(i)]));
      gradients.push_back(gradient_of(c));
    }
    EXPECT_EQ(outs[0].y, outs[1].y);
    EXPECT_EQ(outs[0].norm, outs[1].norm);
    EXPECT_EQ(gradients[0].df, gradients[1].df);
    EXPECT_EQ(gradients[0].dq, gradients[1].dq);
    EXPECT_EQ(gradients[0].dp, gradients[1].dp);
    EXPECT_EQ(gradients[0].dv, gradients[1].dv);
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace plait
