// The stochastic block model: exact counts, the statistics that its options promise, and pinned
// checksums. Where labels must tell communities apart, there are as many classes as communities.
#include "plait/graph/dcsbm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/crawl.h"
#include "plait/graph/validate.h"
#include "tests/support/error_of.h"
#include "tests/support/memory_peak.h"
#include "tests/support/simple_graph.h"

namespace plait {
namespace {

const Csr32& graph_of(const Dataset& dataset) { return std::get<Csr32>(dataset.graph); }

std::uint64_t checksum(const Dataset& dataset) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](const auto& values) {
    for (const auto value : values)
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3u;
  };
  add(graph_of(dataset).offsets);
  add(graph_of(dataset).neighbours);
  add(dataset.labels);
  add(dataset.splits);
  for (const float value : dataset.features.f32)
    add(std::vector{std::bit_cast<std::uint32_t>(value)});
  return hash;
}

DcsbmOptions bare(std::uint64_t vertices, std::uint64_t edges, std::uint64_t communities) {
  DcsbmOptions options;
  options.vertices = vertices;
  options.edges = edges;
  options.communities = communities;
  options.classes = static_cast<std::int32_t>(communities);
  options.width = 0;
  return options;
}

TEST(Dcsbm, ExactlyTheAskedEdges) {
  for (const std::uint64_t edges : {0, 2, 1000, 30002}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      DcsbmOptions options = bare(500, edges, 5);
      options.seed = seed;
      const Dataset dataset = generate_dcsbm(options);
      EXPECT_EQ(dataset.vertices(), 500u);
      EXPECT_EQ(dataset.edges(), edges);
      EXPECT_TRUE(dataset.symmetric);
      test::expect_simple_and_symmetric(graph_of(dataset));
    }
  }
}

TEST(Dcsbm, TheAskedShareOfEdgesLeavesItsCommunity) {
  for (const double leaving : {0.0, 0.05, 0.4, 1.0}) {
    DcsbmOptions options = bare(5000, 100000, 20);
    options.leaving = leaving;
    const Dataset dataset = generate_dcsbm(options);
    const Csr32& graph = graph_of(dataset);
    double left = 0;
    for (std::uint64_t v = 0; v < graph.vertices(); ++v)
      for (const std::uint32_t u : graph.row(v)) left += dataset.labels[u] != dataset.labels[v];
    EXPECT_NEAR(left / 100000, leaving, 1e-4);
  }
}

TEST(Dcsbm, DegreesHaveAHeavyTailOfTheGivenExponentUpToTheCap) {
  DcsbmOptions options = bare(50000, 1000000, 50);
  options.cap = 1500;
  const Dataset dataset = generate_dcsbm(options);
  const Csr32& graph = graph_of(dataset);
  double most = 0, above_40 = 0, above_160 = 0;
  for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
    const auto degree = static_cast<double>(graph.degree(v));
    most = std::max(most, degree);
    above_40 += degree > 40;
    above_160 += degree > 160;
  }
  EXPECT_GT(most, 25 * 20.0);
  EXPECT_LT(most, 1.15 * 1500) << "the cap is on expected degrees";
  // The tail of density x^-2.5 falls by 4^1.5 from 40 to 160 (a little more because of the cap).
  EXPECT_NEAR(above_160 / above_40, 0.125, 0.025);
}

TEST(Dcsbm, CommunitiesAreUnevenAndNoneIsEmpty) {
  const auto sizes = [](std::uint64_t vertices, std::uint64_t communities) {
    std::vector<std::uint64_t> count(communities, 0);
    for (const std::int32_t label : generate_dcsbm(bare(vertices, 0, communities)).labels)
      ++count[static_cast<std::size_t>(label)];
    return count;
  };
  const auto many = sizes(20000, 50);
  const auto [least, most] = std::ranges::minmax(many);
  EXPECT_GT(static_cast<double>(most) / static_cast<double>(least), 6);
  EXPECT_LT(static_cast<double>(most) / static_cast<double>(least), 12);
  EXPECT_EQ(std::accumulate(many.begin(), many.end(), std::uint64_t{0}), 20000u);
  EXPECT_GT(std::ranges::min(sizes(60, 50)), 0u);
  EXPECT_EQ(sizes(50, 50), std::vector<std::uint64_t>(50, 1));
}

TEST(Dcsbm, IdsAreShuffled) {
  const Dataset dataset = generate_dcsbm(bare(10000, 0, 2));
  const auto first_half = dataset.labels.span().first(5000);
  const double share = static_cast<double>(std::ranges::count(dataset.labels, 1)) / 10000;
  EXPECT_NEAR(static_cast<double>(std::ranges::count(first_half, 1)) / 5000, share, 0.03);
}

// Returns the accuracy of the nearest class mean, of the rows themselves.
double nearest_mean_accuracy(const std::vector<double>& rows, const Dataset& dataset) {
  const std::size_t width = dataset.features.width, n = dataset.vertices();
  const auto classes = static_cast<std::size_t>(dataset.classes);
  std::vector<double> means(classes * width, 0), count(classes, 0);
  for (std::size_t v = 0; v < n; ++v) {
    const auto c = static_cast<std::size_t>(dataset.labels[v]);
    ++count[c];
    for (std::size_t j = 0; j < width; ++j) means[c * width + j] += rows[v * width + j];
  }
  double right = 0;
  for (std::size_t v = 0; v < n; ++v) {
    std::vector<double> distance(classes, 0);
    for (std::size_t c = 0; c < classes; ++c)
      for (std::size_t j = 0; j < width; ++j) {
        const double d = rows[v * width + j] - means[c * width + j] / count[c];
        distance[c] += d * d;
      }
    right += std::ranges::min_element(distance) - distance.begin() == dataset.labels[v];
  }
  return right / static_cast<double>(n);
}

TEST(Dcsbm, FeaturesNeedTheEdges) {
  const Dataset dataset = generate_dcsbm({.communities = 7});
  const Csr32& graph = graph_of(dataset);
  const std::size_t width = dataset.features.width;
  ASSERT_EQ(dataset.features.f32.size(), dataset.vertices() * 32);
  ASSERT_TRUE(std::ranges::all_of(dataset.features.f32, [](float x) { return std::isfinite(x); }));
  const std::vector<double> raw(dataset.features.f32.begin(), dataset.features.f32.end());
  std::vector<double> averaged = raw;
  for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
    for (const std::uint32_t u : graph.row(v))
      for (std::size_t j = 0; j < width; ++j) averaged[v * width + j] += raw[u * width + j];
    for (std::size_t j = 0; j < width; ++j)
      averaged[v * width + j] /= static_cast<double>(graph.degree(v) + 1);
  }
  const double alone = nearest_mean_accuracy(raw, dataset);
  const double together = nearest_mean_accuracy(averaged, dataset);
  EXPECT_GT(alone, 0.5);
  EXPECT_LT(alone, 0.75);
  EXPECT_GT(together, 0.93);
  EXPECT_GT(together - alone, 0.2);
}

TEST(Dcsbm, NoiseHasTheGivenDeviation) {
  DcsbmOptions options = bare(2000, 0, 1);
  options.leaving = 0;
  options.width = 50;
  options.noise = 3;
  const Dataset dataset = generate_dcsbm(options);
  std::vector<double> mean(50, 0);
  for (std::size_t i = 0; i < 100000; ++i) mean[i % 50] += dataset.features.f32[i] / 2000;
  double square = 0;
  for (std::size_t i = 0; i < 100000; ++i)
    square += std::pow(dataset.features.f32[i] - mean[i % 50], 2) / 100000;
  EXPECT_NEAR(std::sqrt(square), 3, 0.03);
}

TEST(Dcsbm, SplitsHaveTheirCountsInEachClass) {
  DcsbmOptions options = bare(1000, 2000, 4);
  options.train_per_class = 30;
  options.validation_per_class = 90;  // more than the smallest class has left
  const Dataset dataset = generate_dcsbm(options);
  ASSERT_EQ(dataset.split_count, 1u);
  ASSERT_EQ(dataset.classes, 4);
  for (std::int32_t c = 0; c < 4; ++c) {
    std::array<std::uint64_t, 4> count{};
    for (std::size_t v = 0; v < 1000; ++v)
      if (dataset.labels[v] == c) ++count[static_cast<std::size_t>(dataset.splits[v])];
    const std::uint64_t size = count[0] + count[1] + count[2] + count[3];
    EXPECT_EQ(count[0], 0u);
    EXPECT_EQ(count[1], 30u);
    EXPECT_EQ(count[2], std::min<std::uint64_t>(90, size - 30));
  }
}

TEST(Dcsbm, TheSameOnEveryMachineAndForAnyNumberOfThreads) {
  DcsbmOptions options;
  options.seed = 42;
  const int threads = omp_get_max_threads();
  for (const int count : {1, 2, 7}) {
    omp_set_num_threads(count);
    EXPECT_EQ(checksum(generate_dcsbm(options)), 6493557086668780675u);
  }
  omp_set_num_threads(threads);
  options.seed = 43;
  EXPECT_NE(checksum(generate_dcsbm(options)), 6493557086668780675u);
}

TEST(Dcsbm, ADenseGraphIsFoundOrRefusedWithFigures) {
  DcsbmOptions options = bare(60, 60 * 59, 1);
  options.leaving = 0;
  options.exponent = 10;
  EXPECT_EQ(generate_dcsbm(options).edges(), 60u * 59);
  // Draws 14,000 of the 14,273 pairs inside communities, by very uneven weights.
  options = bare(1000, 28000, 50);
  options.leaving = 0;
  options.exponent = 1.5;
  try {
    generate_dcsbm(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("of 14000 pairs of vertices inside"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("ask for fewer edges"), std::string::npos);
  }
}

TEST(Dcsbm, RefusesWhatMakesNoSense) {
  const auto refused = [](auto change) {
    DcsbmOptions options = bare(100, 200, 5);
    change(options);
    EXPECT_THROW(generate_dcsbm(options), UsageError);
  };
  refused([](auto& o) { o.vertices = 0; });
  refused([](auto& o) { o.edges = 201; });
  refused([](auto& o) { o.edges = 100 * 100; });
  refused([](auto& o) { o.communities = 0; });
  refused([](auto& o) { o.communities = 101; });
  refused([](auto& o) { o.communities = 1; });  // and a fifth of the edges leaves it
  refused([](auto& o) { o.leaving = -0.1; });
  refused([](auto& o) { o.leaving = std::nan(""); });
  refused([](auto& o) { o.exponent = 1; });
  refused([](auto& o) { o.classes = -1; });
  refused([](auto& o) { o.noise = INFINITY; });
  EXPECT_THROW(generate_dcsbm(bare(4000000000, std::uint64_t{1} << 46, 5)), DoesNotFitError);
}

// The figures of a refusal are those of a run that is not refused.
TEST(Dcsbm, TakesTheMemoryThatItSays) {
#ifdef PLAIT_SANITIZED
  GTEST_SKIP() << "measured without sanitizers";
#endif
  DcsbmOptions many_edges = bare(100000, 8000000, 50), wide = bare(400000, 800000, 50);
  wide.classes = 5, wide.width = 100;
  DcsbmOptions sets = bare(400000, 800000, 400);
  sets.labels = DcsbmLabels::sets;
  for (const DcsbmOptions& options : {many_edges, wide, sets}) {
    ::setenv("PLAIT_HOST_MEMORY", "1", 1);
    const std::string refusal = error_of([&] { generate_dcsbm(options); });
    ::unsetenv("PLAIT_HOST_MEMORY");
    const auto at = refusal.find("needs ");
    ASSERT_NE(at, std::string::npos) << refusal;
    const double planned = std::stod(refusal.substr(at + 6)) * (1 << 20);  // MiB
    const test::MemoryPeak peak;
    const Dataset made = generate_dcsbm(options);
    EXPECT_NEAR(static_cast<double>(peak.bytes()) / planned, 1, 0.1) << refusal;
  }
}

TEST(Dcsbm, OneVertexAndNoClasses) {
  DcsbmOptions options = bare(1, 0, 1);
  options.classes = 0;
  options.leaving = 0;
  const Dataset dataset = generate_dcsbm(options);
  EXPECT_EQ(dataset.vertices(), 1u);
  EXPECT_TRUE(dataset.labels.empty() && dataset.splits.empty() && dataset.features.empty());
}

TEST(Dcsbm, VerticesMayHaveSeveralLabels) {
  DcsbmOptions options = bare(3000, 6000, 30);
  options.labels = DcsbmLabels::sets;
  options.width = 4;
  const Dataset dataset = generate_dcsbm(options);
  EXPECT_NO_THROW(validate(dataset, "sets"));
  EXPECT_EQ(dataset.task(), TaskKind::multi_label);
  EXPECT_EQ(dataset.label_sets.size(), 3000u * 30);
  std::vector<std::uint64_t> of_label(30, 0);
  for (std::size_t i = 0; i < dataset.label_sets.size(); ++i)
    of_label[i % 30] += dataset.label_sets[i];
  for (const std::uint64_t count : of_label) EXPECT_TRUE(count > 0 && count < 3000);
  const auto all = std::accumulate(of_label.begin(), of_label.end(), std::uint64_t{0});
  EXPECT_NEAR(static_cast<double>(all) / (3000 * 30), 1. / 30 + 29. / 30 * 0.3, 0.05);
}

// Vertices of a graph stand together; a class, and a part of the split, is a graph's.
TEST(Dcsbm, CommunitiesMayBeASetOfGraphs) {
  DcsbmOptions options = bare(4000, 12000, 300);
  options.labels = DcsbmLabels::graphs;
  options.classes = 3, options.width = 4, options.leaving = 0;
  const Dataset dataset = generate_dcsbm(options);
  EXPECT_NO_THROW(validate(dataset, "graphs"));
  EXPECT_EQ(dataset.graphs, 300u);
  EXPECT_EQ(dataset.labels.size(), 300u);
  EXPECT_EQ(std::ranges::count(dataset.splits, Split::train), 60);
  EXPECT_TRUE(std::ranges::is_sorted(dataset.graph_ids));
  EXPECT_EQ(dataset.graph_ids.back(), 299u);
  const Csr32& graph = graph_of(dataset);
  std::vector<std::uint64_t> sizes(300, 0);
  for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
    ++sizes[dataset.graph_ids[v]];
    for (const std::uint32_t u : graph.row(v))
      ASSERT_EQ(dataset.graph_ids[u], dataset.graph_ids[v]);
  }
  EXPECT_FALSE(std::ranges::is_sorted(sizes));  // as the communities are
  options.leaving = 0.1;
  EXPECT_THROW(generate_dcsbm(options), UsageError);
}

TEST(Crawl, HasClassesThatFollowSites) {
  CrawlGraph crawl = crawl_like("it-2004", 1e-4);
  const Dataset dataset = generate_crawl_graph(crawl);
  EXPECT_NO_THROW(validate(dataset, "crawl"));
  EXPECT_EQ(dataset.features.width, 256u);
  EXPECT_EQ(dataset.labels[63], 0);
  EXPECT_EQ(dataset.labels[64], 1);
  EXPECT_EQ(std::ranges::count(dataset.splits, Split::train), 64 * 20);
  crawl.data = {};
  const Dataset bare_crawl = generate_crawl_graph(crawl);
  EXPECT_TRUE(bare_crawl.labels.empty() && bare_crawl.features.empty());
  EXPECT_EQ(bare_crawl.edges(), dataset.edges());
}

}  // namespace
}  // namespace plait
