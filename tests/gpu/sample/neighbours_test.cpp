// Neighbour sampling on the GPU: the same samples as on the CPU, number by number.
#include "plait/sample/cuda/neighbours.h"

#include <gtest/gtest.h>

#include <iterator>
#include <limits>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/sample/draw.h"
#include "tests/support/error_of.h"
#include "tests/support/sample_case.h"

namespace plait {
namespace {

using test::SampleKind;
using test::SampleSeeds;
using Fanouts = std::vector<std::int64_t>;

Sample gpu_sample(const GpuNeighbourSampler& sampler, const SampleSeeds& seeds, std::uint64_t key,
                  GpuSampleBuffers& buffers) {
  return to_host(sampler.sample(seeds.ids, key, buffers, nullptr, seeds.times));
}

// One graph on the GPU and the CPU, with ids of one width.
struct Both {
  const test::SampleGraph& graph;
  AnyCsr here;
  GpuGraph there;

  Both(const test::SampleGraph& given, bool wide)
      : graph(given), here(given.with_ids_of(wide)), there(here) {}

  // Compares batches, some through the same buffers, with the CPU's sampler.
  void check(const SampleKind& kind, const Fanouts& fanouts,
             std::initializer_list<std::size_t> batches, GpuSampleBuffers& buffers) const {
    unsigned number = 0;
    std::vector<SampleSeeds> seeds;
    for (const std::size_t batch : batches)
      seeds.emplace_back(vertex_count(here), batch, kind.timed(), ++number);
    check(kind, fanouts, seeds, buffers);
  }
  void check(const SampleKind& kind, const Fanouts& fanouts,
             const std::vector<SampleSeeds>& batches, GpuSampleBuffers& buffers) const {
    const SampleSettings settings = kind.settings(fanouts);
    const SampleValues values = kind.values(graph);
    const NeighbourSampler sampler(here, settings, values);
    const GpuValues gpu_values(here, settings, values);
    const GpuNeighbourSampler gpu(there.csr(), settings, gpu_values.view());
    const auto workspace = sampler.workspace();
    unsigned number = 0;
    for (const SampleSeeds& seeds : batches) {
      SCOPED_TRACE(testing::Message() << kind.name() << ", fan-out " << fanouts[0] << ", batch of "
                                      << seeds.ids.size());
      const std::uint64_t key = sample_key(3, ++number);
      test::expect_equal(gpu_sample(gpu, seeds, key, buffers),
                         sampler.sample(seeds.ids, key, *workspace, seeds.times));
      if (testing::Test::HasFailure()) return;
    }
  }
};

// Rows of every length around those at which a kernel changes its way.
Csr64 graph_of_all_degrees() {
  std::vector<std::uint64_t> degrees(400, 6);
  std::size_t at = 0;
  for (const std::uint64_t degree :
       {0,  1,  2,  5,  7,   8,   9,   15,  16,  17,  29,  30,  31,   32,   33,   34,
        63, 64, 65, 99, 100, 101, 255, 256, 257, 511, 512, 999, 1000, 1001, 1500, 3000})
    degrees[at++] = degree, degrees[at++ + 100] = degree;
  return test::csr_of_degrees(degrees, 8);
}

TEST(NeighboursCuda, OddGraphsEqualTheReference) {
  GpuSampleBuffers buffers;
  for (const test::SampleGraph& graph : test::sample_graphs())
    for (const bool wide : {false, true}) {
      const Both both(graph, wide);
      for (const SampleKind& kind : test::sample_kinds())
        for (const Fanouts& fanouts :
             {Fanouts{}, {1}, {3, 2}, {-1, 2}, {9, 8, 7}, {40, 5}, {-1, -1}}) {
          const SampleSettings settings = kind.settings(fanouts);
          const SampleValues values = kind.values(graph);
          const GpuValues gpu_values(both.here, settings, values);
          const GpuNeighbourSampler sampler(both.there.csr(), settings, gpu_values.view());
          for (const std::size_t batch : {0, 1, 6}) {
            SCOPED_TRACE(kind.name() + " wide " + std::to_string(wide));
            const SampleSeeds seeds(vertex_count(both.here), batch, kind.timed());
            test::expect_equal(gpu_sample(sampler, seeds, 7, buffers),
                               sample_neighbours_reference(both.here, settings, values, seeds.ids,
                                                           7, seeds.times));
            if (HasFailure()) return;
          }
        }
    }
}

TEST(NeighboursCuda, AllFanoutsOfAllDegrees) {
  GpuSampleBuffers buffers;
  const test::SampleGraph graph(graph_of_all_degrees());
  for (const bool wide : {false, true}) {
    const Both both(graph, wide);
    for (const SampleKind& kind : test::sample_kinds())
      for (const std::int64_t fanout :
           {-1, 1, 5, 8, 9, 16, 17, 30, 32, 33, 64, 100, 255, 1000, 2500}) {
        both.check(kind, {fanout, 3}, {400, 1, 33}, buffers);
        if (HasFailure()) return;
      }
  }
}

// Growing and shrinking batches, one after the other through the same buffers.
TEST(NeighboursCuda, BatchesThroughTheSameBuffers) {
  GpuSampleBuffers buffers;
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(20000, 300000, 4));
  for (const bool wide : {false, true}) {
    const Both both(graph, wide);
    for (const SampleKind& kind : test::sample_kinds())
      for (const Fanouts& fanouts : {Fanouts{10, 5}, {4, 4, 4}, {15}}) {
        both.check(kind, fanouts, {512, 3, 0, 2000, 1, 700}, buffers);
        if (HasFailure()) return;
      }
  }
}

// So few vertices of the graph are reached that only their places are emptied.
TEST(NeighboursCuda, SmallSamplesOfALargeGraph) {
  GpuSampleBuffers buffers;
  const test::SampleGraph graph(test::csr_of_degrees(std::vector<std::uint64_t>(200000, 4), 6));
  const Both both(graph, false);
  for (const SampleKind& kind : test::sample_kinds()) {
    both.check(kind, {3, 2}, {40, 100, 40, 5000, 40, 7}, buffers);
    if (HasFailure()) return;
  }
}

// Numbers of 64 bits, tables in global memory, and counts that the host waits for.
TEST(NeighboursCuda, Hubs) {
  GpuSampleBuffers buffers;
  std::vector<std::uint64_t> degrees(3000, 2);
  degrees[0] = 1000000, degrees[5] = 70000, degrees[9] = 65536, degrees[10] = 65537;
  const test::SampleGraph graph(test::csr_of_degrees(degrees, 7));
  for (const bool wide : {false, true}) {
    const Both both(graph, wide);
    for (const SampleKind& kind : test::sample_kinds())
      for (const Fanouts& fanouts :
           {Fanouts{30, 30}, {1000}, {5000, 2}, {2049, 2}, {65536}, {200000}, {-1, -1}}) {
        if (wide && fanouts.size() == 1) continue;
        SampleSeeds seeds(3000, 0, false);
        seeds.ids = {10, 0, 7, 5, 9, 0};
        if (kind.timed()) seeds.times = {3, 1, 9, -2, 0, -3};
        both.check(kind, fanouts, {seeds}, buffers);
        if (HasFailure()) return;
      }
  }
}

// Weights whose ranks are nearly all the same number, and far apart; times at both ends.
TEST(NeighboursCuda, ValuesOfAllMagnitudes) {
  GpuSampleBuffers buffers;
  test::SampleGraph graph(graph_of_all_degrees());
  constexpr float kWeights[] = {1e-45f, 3e38f, 1, 1.0000001f, 0, 1e-30f};
  constexpr std::int64_t kTimes[] = {std::numeric_limits<std::int64_t>::min(),
                                     std::numeric_limits<std::int64_t>::max(), -1, 0};
  for (EdgeOffset e = 0; e < graph.graph.edges(); ++e) {
    graph.weights[e] = kWeights[e % 7 % std::size(kWeights)];
    graph.edge_times[e] = kTimes[e % 5 % std::size(kTimes)];
  }
  const Both both(graph, false);
  for (const SampleKind& kind : test::sample_kinds())
    for (const std::int64_t fanout : {1, 7, 40, 300}) {
      SampleSeeds seeds(400, 300, kind.timed());
      for (std::size_t i = 0; i < seeds.times.size(); ++i) seeds.times[i] = kTimes[i % 4];
      both.check(kind, {fanout, 2}, {seeds}, buffers);
      if (HasFailure()) return;
    }
}

TEST(NeighboursCuda, SeveralSamplesAtOnce) {
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(3000, 40000, 9));
  const Both both(graph, false);
  const SampleSettings settings{.fanouts = {10, 10}};
  const NeighbourSampler sampler(both.here, settings);
  const GpuNeighbourSampler gpu(both.there.csr(), settings);
  std::vector<GpuSampleBuffers> buffers(3);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  const auto seeds_of = [](unsigned i) { return SampleSeeds(3000, 100 + i, false, i + 1).ids; };
  for (unsigned i = 0; i < buffers.size(); ++i)
    gpu.enqueue(seeds_of(i), i, buffers[i], i == 1 ? nullptr : stream);
  for (unsigned i = 0; i < buffers.size(); ++i)
    test::expect_equal(to_host(gpu.wait(buffers[i])),
                       sampler.sample(seeds_of(i), i, *sampler.workspace()));
  cudaStreamDestroy(stream);
}

TEST(NeighboursCuda, TreesAreKeyedFromTheFirstOn) {
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(500, 9000, 9));
  const Both both(graph, false);
  const SampleSeeds seeds(500, 40, true);
  for (const SampleKind& kind :
       {SampleKind{.disjoint = true}, SampleKind{.disjoint = true, .weighted = true},
        SampleKind{.replace = true, .disjoint = true, .by_edges = true}, SampleKind{}}) {
    const SampleSettings settings = kind.settings({4, 2});
    const SampleValues values = kind.values(graph);
    const NeighbourSampler sampler(both.here, settings, values);
    const GpuValues gpu_values(both.here, settings, values);
    const GpuNeighbourSampler gpu(both.there.csr(), settings, gpu_values.view());
    GpuSampleBuffers buffers;
    const auto times = kind.timed() ? seeds.times : std::vector<std::int64_t>();
    const auto found = to_host(gpu.sample(seeds.ids, 5, buffers, nullptr, times, 1000));
    test::expect_equal(found, sampler.sample(seeds.ids, 5, *sampler.workspace(), times, 1000));
    const auto other = to_host(gpu.sample(seeds.ids, 5, buffers, nullptr, times, 1001));
    EXPECT_EQ(other.hops[0].edges == found.hops[0].edges, !kind.disjoint) << kind.name();
  }
}

TEST(NeighboursCuda, SingleHopsAreThoseOfTheCpu) {
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(500, 9000, 9));
  const Both both(graph, false);
  GpuSampleBuffers buffers;
  for (SampleKind kind : test::sample_kinds()) {
    if (kind.disjoint || kind.targets != HopTargets::all) continue;
    SCOPED_TRACE(kind.name());
    const SampleSettings settings = kind.settings({4, -1, 40});
    const SampleValues values = kind.values(graph);
    const NeighbourSampler sampler(both.here, settings, values);
    const GpuValues gpu_values(both.here, settings, values);
    const GpuNeighbourSampler gpu(both.there.csr(), settings, gpu_values.view());
    const auto workspace = sampler.workspace();
    for (const std::size_t hop : {2, 0, 1}) {
      std::vector<std::uint64_t> seeds;
      for (std::uint64_t v = hop; v < 500; v += 7 + hop) seeds.push_back(v);
      gpu.enqueue_hop(hop, seeds, 5, buffers, nullptr);
      test::expect_equal(to_host(gpu.wait(buffers)), sampler.sample_hop(hop, seeds, 5, *workspace));
    }
    // A sample of all hops follows in the same buffers.
    const SampleSeeds all(500, 20, false);
    test::expect_equal(gpu_sample(gpu, all, 6, buffers), sampler.sample(all.ids, 6, *workspace));
    EXPECT_EQ(error_of([&] { gpu.enqueue_hop(3, all.ids, 5, buffers, nullptr); }),
              "hop 3 of 3 cannot be sampled alone");
  }
}

TEST(NeighboursCuda, RefusesAndGoesOn) {
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(30, 90, 9));
  const Both both(graph, false);
  const auto make = [&](const SampleSettings& settings, const SampleValues& values = {},
                        bool again = false) {
    SampleSettings others = settings;
    others.replace = again;
    const GpuValues there(both.here, others, values);
    GpuNeighbourSampler(both.there.csr(), settings, there.view());
  };
  EXPECT_EQ(error_of([&] {
              make({.fanouts = {3, 0}});
            }),
            "fan-out 0 of hop 1 is outside 1..16777216; use -1 for all edges");
  EXPECT_EQ(error_of([&] { make({.fanouts = {3}, .time = TimeRule::last}); }),
            "the latest edges can be taken only if edges or vertices have times");
  EXPECT_EQ(error_of([&] { make({.fanouts = {3}}, {.edge_times = graph.edge_times}); }),
            "times need disjoint samples, because each seed has a time of its own");
  EXPECT_EQ(error_of([&] { make({.fanouts = {3}}, {.weights = graph.weights}, true); }),
            "the values on the GPU were made for other settings of the sampler");
  std::vector<float> weights = graph.weights;
  weights[4] = -1;
  EXPECT_EQ(error_of([&] { make({.fanouts = {3}}, {.weights = weights}); }),
            "the weight of edge 4 is -1; weights must be finite and >= 0");
  GpuSampleBuffers buffers;
  const GpuNeighbourSampler sampler(both.there.csr(), {.fanouts = {3}});
  const std::vector<std::uint64_t> bad{1, 30};
  EXPECT_EQ(error_of([&] { sampler.enqueue(bad, 1, buffers, nullptr); }),
            "seed 1 is 30, outside 0..29");
  const std::vector<std::uint64_t> good{1, 2};
  const std::vector<std::int64_t> times{1, 2};
  EXPECT_EQ(error_of([&] { sampler.enqueue(good, 1, buffers, nullptr, times); }),
            "the seeds have times, but neither edges nor vertices have any");
  both.check({}, {3}, {5}, buffers);
}

}  // namespace
}  // namespace plait
