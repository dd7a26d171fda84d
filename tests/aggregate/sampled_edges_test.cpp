// Sums over the edges of a sample, and their gradients, against plain loops in double.
#include "plait/aggregate/sampled_edges.h"

#include <gtest/gtest.h>

#include "tests/support/sampled_edges_case.h"

namespace plait::test {
namespace {

// Calls each(target, source, factor) for all edges.
template <class Each>
void for_edges(const Sampled& s, Each each) {
  for (std::size_t i = 0; i + 1 < s.edges.offsets.size(); ++i)
    for (EdgeOffset e = s.edges.offsets[i]; e < s.edges.offsets[i + 1]; ++e) {
      const Slot j = s.edges.sources[e];
      const double weight = s.weighted && !s.edges.weights.empty() ? s.edges.weights[e] : 1;
      each(i, j, weight * (s.pre.empty() ? 1 : s.pre[j]) * (s.post.empty() ? 1 : s.post[i]));
    }
}

void expect_near(const std::vector<float>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5) << i;
}

void check(const Sampled& s, std::uint64_t width, std::mt19937& random) {
  const auto aggregator = make_sample_aggregator(s.edges);
  const std::uint64_t own = aggregator->own(), inputs = aggregator->inputs();
  const auto data = [](const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
  const Scaling scaling{data(s.pre), data(s.post), s.weighted};
  for (int again = 0; again < 2; ++again) {
    const auto x = random_floats(random, inputs * width), dy = random_floats(random, own * width);
    std::vector<float> y(own * width, -7), dx(inputs * width, -7);
    std::vector<double> wanted_y(y.size()), wanted_dx(dx.size());
    for_edges(s, [&](std::uint64_t i, std::uint64_t j, double factor) {
      for (std::uint64_t c = 0; c < width; ++c) {
        wanted_y[i * width + c] += factor * x[j * width + c];
        wanted_dx[j * width + c] += factor * dy[i * width + c];
      }
    });
    aggregator->forward(scaling, x.data(), y.data(), width);
    aggregator->backward(scaling, dy.data(), dx.data(), width);
    expect_near(y, wanted_y);
    expect_near(dx, wanted_dx);
  }
}

TEST(SampledEdges, SumsAndGradientsAreThoseOfPlainLoops) {
  std::mt19937 random(3);
  for (const std::uint64_t width : {1, 3, 16, 100}) {
    check(random_sample(random, 30, 90), width, random);
    Sampled plain = random_sample(random, 5, 5);
    plain.pre = plain.post = plain.edges.weights = {};
    check(plain, width, random);
    Sampled unweighted = random_sample(random, 40, 41);
    unweighted.weighted = false;
    check(unweighted, width, random);
  }
}

TEST(SampledEdges, RowsMayBeMissing) {
  std::mt19937 random(4);
  check({}, 3, random);  // a rank without examples
  Sampled no_edges;
  no_edges.edges = {
      .offsets = {0, 0, 0}, .sources = {}, .weights = {}, .inputs = 2, .vertices = {}};
  check(no_edges, 3, random);
}

TEST(SampledEdges, CountsAndWeightsAreOfOwnRows) {
  const auto sample = make_sample_aggregator(
      {.offsets = {0, 2, 2}, .sources = {1, 2}, .weights = {0.5f, 2}, .inputs = 3, .vertices = {}});
  EXPECT_EQ(sample->edges(), 2u);
  EXPECT_EQ(sample->edge_counts(), (std::vector<float>{2, 0}));
  EXPECT_EQ(std::vector<float>(sample->degree().begin(), sample->degree().end()),
            (std::vector<float>{2.5f, 0}));
}

}  // namespace
}  // namespace plait::test
