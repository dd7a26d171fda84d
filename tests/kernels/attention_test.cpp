// attention against its reference, and the reference against values known by hand and against
// finite differences.
#include "plait/kernels/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "plait/base/error.h"
#include "plait/kernels/cpu/fast_exp.h"
#include "tests/support/attention_case.h"

namespace plait {
namespace {

using test::AttentionCase;
using test::AttentionGradient;
using test::AttentionOut;
using test::expect_near;
using test::random_both_ways;
using test::star_both_ways;

void expect_matches_reference(const AttentionCase& c, double tolerance = 4e-6) {
  SCOPED_TRACE(testing::Message() << "heads " << c.shape.heads << " features " << c.shape.features
                                  << " slope " << c.shape.slope << " p " << c.dropout.p());
  tolerance /= 1 - double{c.dropout.p()};
  const AttentionOut expected = c.reference();
  AttentionOut out, inferred;
  apply(c.forward(out));
  apply(c.forward(inferred, false));
  const Csr<std::uint32_t>& graph = c.edges.graph;
  expect_near(out.y, expected.y, graph, tolerance);
  expect_near(inferred.y, expected.y, graph, tolerance);
  expect_near(out.u, expected.u, graph, tolerance);
  expect_near(out.b, expected.b, graph, tolerance);
  expect_near(out.norm, expected.norm, graph, tolerance);

  const std::vector<float> rows = c.backward_rows(expected, 3);
  const AttentionGradient wanted = c.reference_gradient(rows);
  AttentionGradient gradient;
  apply(c.backward(rows, gradient));
  const auto features = static_cast<double>(c.shape.features);
  expect_near(gradient.dh, wanted.dh, c.edges.transposed, tolerance);
  expect_near(gradient.ds, wanted.ds, c.edges.transposed, tolerance * (1 + std::sqrt(features)));
}

// Values are compared, so that it is seen when all are wrong alike. Vertex 0 reads 1 and 2, with
// weights 3/4 and 1/4; the score of 2 is 0, where the slope is that of negative numbers.
TEST(Attention, ByHand) {
  AttentionCase c(test::BothWays(3, {{1, 0, 1}, {2, 0, 1}}), {.shape = {1, 1, 0.5f}});
  c.t = {0.5f, 9, 9};
  c.x = {99, 99, 8, std::log(3.0f) - 0.5f, 4, -0.5f};
  c.take_own();
  c.dy = {10, 9, 9};
  const auto check = [&](auto&& run) {
    AttentionOut out;
    run(c.forward(out));
    const auto near = [](std::vector<float> expected) {
      return testing::Pointwise(testing::FloatNear(1e-5f), expected);
    };
    EXPECT_THAT(out.y, near({7, 0, 0}));
    EXPECT_THAT(out.u, near({6.5f, 0, 0}));
    EXPECT_THAT(out.b, near({0.875f, 0, 0}));
    EXPECT_THAT(out.norm, near({std::log(4.0f), 0, 0}));
    AttentionGradient gradient;
    const std::vector<float> rows = c.backward_rows(out);
    run(c.backward(rows, gradient));
    EXPECT_THAT(gradient.dh, near({0, 7.5f, 2.5f}));
    // a r (dy h - c): 3/4 (80 - 70) and 1/4 * 1/2 (40 - 70)
    EXPECT_THAT(gradient.ds, near({0, 7.5f, -3.75f}));
  };
  check([](const auto& args) { apply_reference(args); });
  check([](const auto& args) { apply(args); });
}

// Gradients are compared with the derivative of the sum of dy y for each h, s and t.
TEST(Attention, ReferenceGradientsAreFiniteDifferences) {
  for (const float slope : {0.0f, 0.2f, 1.0f})
    for (const float p : {0.0f, 0.4f}) {
      AttentionCase c(random_both_ways(9, 40, 5), {.shape = {3, 2, slope}, .p = p});
      // s are eighths, t are sixteenths off: no argument of leaky_relu is near its kink.
      for (std::size_t i = 0; i < c.x.size(); ++i)
        if (i % c.stride >= c.shape.tail()) c.x[i] = std::round(c.x[i] * 8) / 8;
      c.take_own();
      for (float& t : c.t) t = std::round(t * 8) / 8 + 1.0f / 16;
      const AttentionOut out = c.reference();
      const AttentionGradient gradient = c.reference_gradient(c.backward_rows(out));
      const std::vector<float> products_with_y = c.products(out.y), with_u = c.products(out.u);

      const auto loss = [&] {
        const AttentionOut now = c.reference();
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
      for (std::uint64_t v = 0; v < c.vertices; ++v)
        for (std::uint64_t k = 0; k < c.shape.heads; ++k) {
          const std::uint64_t head = v * c.shape.heads + k;
          for (std::uint64_t j = k * c.shape.features; j < (k + 1) * c.shape.features; ++j)
            ASSERT_NEAR(gradient.dh[v * c.shape.width() + j], difference(c.x[v * c.stride + j]),
                        1e-4);
          ASSERT_NEAR(gradient.ds[head], difference(c.x[v * c.stride + c.shape.tail() + k]), 4e-4);
          ASSERT_NEAR(with_u[head] - products_with_y[head] * out.b[head], difference(c.t[head]),
                      4e-4);
        }
    }
}

TEST(Attention, AllShapesMatchTheReference) {
  const test::BothWays graph = random_both_ways(40, 300, 2);
  for (const std::uint64_t heads : {1, 2, 3, 4, 5, 8})
    for (const std::uint64_t features : {1, 2, 3, 7, 8, 9, 16, 31, 32, 33, 40, 64, 65, 70})
      for (const float p : {0.0f, 0.6f})
        expect_matches_reference(
            {graph, {.shape = {heads, features, 0.2f}, .p = p, .padding = features % 5}});
  for (const float slope : {0.0f, 0.2f, 1.0f})
    for (const float p : {0.0f, 0.6f})
      expect_matches_reference({graph, {.shape = {2, 12, slope}, .p = p}});
}

TEST(Attention, OddGraphs) {
  const AttentionCase::Options options{.shape = {3, 10, 0.2f}, .p = 0.3f};
  expect_matches_reference({random_both_ways(0, 0, 1), options});
  expect_matches_reference({random_both_ways(1, 0, 1), options});
  expect_matches_reference({random_both_ways(50, 0, 1), options});
  expect_matches_reference({random_both_ways(1, 1, 1), options});     // one loop
  expect_matches_reference({random_both_ways(1, 40, 1), options});    // 40 parallel loops
  expect_matches_reference({random_both_ways(3, 500, 1), options});   // parallel edges
  expect_matches_reference({random_both_ways(700, 50, 1), options});  // most rows are empty
}

// Long rows are cut in pieces: rows have about the size at which they are cut, and several times
// it.
TEST(Attention, Hubs) {
  for (const std::uint64_t vertices : {4096, 4097, 10001})
    for (const bool inwards : {false, true})
      for (const float scores : {1.0f, 30.0f})
        expect_matches_reference(
            {star_both_ways(vertices, inwards),
             {.shape = {2, 9, 0.2f}, .p = inwards ? 0.5f : 0.0f, .scores = scores}},
            4e-6 * double{scores});
}

// exp of these scores is infinite, or 0, where the greatest is not subtracted.
TEST(Attention, LargeScores) {
  for (const float scores : {100.0f, 1000.0f})
    expect_matches_reference(
        {random_both_ways(30, 3000, 2), {.shape = {2, 5, 0.2f}, .scores = scores}},
        4e-7 * double{scores});
  AttentionCase c(random_both_ways(1, 3, 2), {.shape = {1, 2, 1.0f}});
  c.x = {3, 4, -1000};
  c.t = {-2000};
  AttentionOut out;
  apply(c.forward(out));
  EXPECT_EQ(out.y, (std::vector<float>{3, 4}));
  EXPECT_EQ(out.b, std::vector<float>{1});
  EXPECT_NEAR(out.norm[0], -3000 + std::log(3.0f), 1e-3);
}

TEST(Attention, NanStaysInItsHeadAndRow) {
  AttentionCase c(test::BothWays(3, {{1, 0, 1}, {2, 0, 1}, {2, 1, 1}}), {.shape = {2, 2, 0.2f}});
  c.x[1 * c.stride + c.shape.tail() + 1] = NAN;  // score of head 1 of vertex 1
  AttentionOut out;
  apply(c.forward(out));
  for (std::size_t i = 0; i < out.y.size(); ++i) EXPECT_EQ(std::isnan(out.y[i]), i / 2 == 1) << i;
}

// y is linear in h with the weights m a, of which dh is the adjoint: only if both ways drop the
// same edges.
TEST(Attention, BothWaysDropTheSameEdges) {
  const AttentionCase c(random_both_ways(200, 6000, 3), {.shape = {5, 3, 0.2f}, .p = 0.6f});
  AttentionOut out;
  apply(c.forward(out));
  AttentionGradient gradient;
  const std::vector<float> rows = c.backward_rows(out);
  apply(c.backward(rows, gradient));
  double forward = 0, backward = 0, size = 0;
  for (std::uint64_t v = 0; v < c.vertices; ++v)
    for (std::uint64_t j = 0; j < c.shape.width(); ++j) {
      const std::uint64_t at = v * c.shape.width() + j;
      forward += double{c.dy[at]} * double{out.y[at]};
      backward += double{gradient.dh[at]} * double{c.h[at]};
      size += std::abs(double{c.dy[at]} * double{out.y[at]});
    }
  EXPECT_NEAR(forward, backward, 1e-6 * size);
}

TEST(Attention, SameBitsForAnyThreadCount) {
  std::vector<test::Edge> edges = test::random_edges(3000, 40000, 1);
  for (std::uint64_t v = 0; v < 20000; ++v) {
    edges.push_back({v % 3000, 5, 1});
    edges.push_back({7, v * 7 % 3000, 1});
  }
  const AttentionCase c(test::BothWays(3000, edges), {.shape = {3, 11, 0.2f}, .p = 0.5f});
  const std::vector<float> rows = c.backward_rows(c.reference());
  const auto run = [&](int threads) {
    omp_set_num_threads(threads);
    AttentionOut out;
    AttentionGradient gradient;
    apply(c.forward(out));
    apply(c.backward(rows, gradient));
    return std::vector{out.y, out.u, out.b, out.norm, gradient.dh, gradient.ds};
  };
  const int before = omp_get_max_threads();
  const auto expected = run(1);
  for (const int threads : {2, 3, 5}) EXPECT_EQ(run(threads), expected) << threads;
  omp_set_num_threads(before);
}

// Rows of a peer, read where it has them, give the bits of rows that were gathered.
TEST(Attention, Peers) {
  const AttentionCase c(random_both_ways(60, 900, 4), {.shape = {2, 10, 0.2f}, .p = 0.5f});
  AttentionOut gathered, translated;
  apply(c.forward(gathered));
  constexpr Slot kOwn = 25;
  std::vector<float> peer(c.x.rbegin(), c.x.rend());  // rows in another order
  std::vector<std::uint32_t> owner, row;
  for (Slot slot = kOwn; slot < c.vertices; ++slot) {
    owner.push_back(1);
    row.push_back(static_cast<std::uint32_t>(c.vertices) - 1 - slot);
    std::copy_n(&c.x[slot * c.stride], c.stride, &peer[row.back() * c.stride]);
  }
  std::vector<float> own(c.x.begin(), c.x.begin() + static_cast<std::ptrdiff_t>(kOwn * c.stride));
  const std::vector<const float*> peers{nullptr, peer.data()};
  AttentionForward args = c.forward(translated);
  args.edges.x = {own.data(), c.stride, kOwn, peers.data(), owner.data(), row.data()};
  apply(args);
  EXPECT_EQ(translated.y, gathered.y);
  EXPECT_EQ(translated.u, gathered.u);
}

TEST(Attention, RefusesUnequalBeginAndEnd) {
  const AttentionCase c(random_both_ways(5, 9, 1), {.shape = {1, 2, 0.2f}});
  AttentionOut out;
  AttentionForward args = c.forward(out);
  args.edges.end = args.edges.end.first(4);
  EXPECT_THROW(apply(args), Error);
}

TEST(FastExp, IsExp) {
  for (double x = -86.99; x < 87; x += 0.00037) {
    const auto at = static_cast<float>(x);
    const double expected = std::exp(double{at});
    ASSERT_NEAR(fast_exp(at) / expected, 1, 3e-7) << x;
  }
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
  EXPECT_EQ(fast_exp(-87.1f), 0.0f);
  EXPECT_EQ(fast_exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(fast_exp(std::numeric_limits<float>::lowest()), 0.0f);
  EXPECT_TRUE(std::isnan(fast_exp(NAN)));
}

}  // namespace
}  // namespace plait
