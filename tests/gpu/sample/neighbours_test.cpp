// Neighbour sampling on the GPU: the same samples as on the CPU, number by number.
#include "plait/sample/cuda/neighbours.h"

#include <gtest/gtest.h>

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

// The kinds that GPUs sample.
std::vector<SampleKind> kinds() {
  std::vector<SampleKind> kinds = test::sample_kinds();
  std::erase_if(kinds, [](const SampleKind& kind) { return kind.weighted || kind.timed(); });
  EXPECT_EQ(kinds.size(), 8u);
  return kinds;
}

Sample gpu_sample(const GpuNeighbourSampler& sampler, const std::vector<std::uint64_t>& seeds,
                  std::uint64_t key, GpuSampleBuffers& buffers) {
  return to_host(sampler.sample(seeds, key, buffers, nullptr));
}

// One graph on the GPU and the CPU, with ids of one width.
struct Both {
  AnyCsr here;
  GpuGraph there;

  explicit Both(AnyCsr graph) : here(std::move(graph)), there(here) {}

  // Compares batches, some through the same buffers, with the CPU's sampler.
  void check(const SampleSettings& settings, std::initializer_list<std::size_t> batches,
             GpuSampleBuffers& buffers) const {
    const NeighbourSampler sampler(here, settings);
    const GpuNeighbourSampler gpu(there.csr(), settings);
    const auto workspace = sampler.workspace();
    unsigned number = 0;
    for (const std::size_t batch : batches) {
      SCOPED_TRACE(testing::Message() << "batch of " << batch);
      const SampleSeeds seeds(vertex_count(here), batch, false, ++number);
      const std::uint64_t key = sample_key(3, number);
      test::expect_equal(gpu_sample(gpu, seeds.ids, key, buffers),
                         sampler.sample(seeds.ids, key, *workspace));
      if (testing::Test::HasFailure()) return;
    }
  }
};

// Rows of every length around those at which a kernel changes its way.
Csr64 graph_of_all_degrees() {
  std::vector<std::uint64_t> degrees(400, 6);
  std::size_t at = 0;
  for (const std::uint64_t degree :
       {0,  1,  2,  5,  7,  8,  9,   15,  16,  17,   29,   30,   31,  32,
        33, 34, 63, 64, 65, 99, 100, 101, 999, 1000, 1001, 1500, 3000})
    degrees[at++] = degree, degrees[at++ + 100] = degree;
  return test::csr_of_degrees(degrees, 8);
}

TEST(NeighboursCuda, OddGraphsEqualTheReference) {
  GpuSampleBuffers buffers;
  for (const test::SampleGraph& graph : test::sample_graphs())
    for (const bool wide : {false, true}) {
      const AnyCsr here = graph.with_ids_of(wide);
      const GpuGraph there(here);
      for (const SampleKind& kind : kinds())
        for (const Fanouts& fanouts :
             {Fanouts{}, {1}, {3, 2}, {-1, 2}, {9, 8, 7}, {40, 5}, {-1, -1}}) {
          const SampleSettings settings = kind.settings(fanouts);
          const GpuNeighbourSampler sampler(there.csr(), settings);
          for (const std::size_t batch : {0, 1, 6}) {
            SCOPED_TRACE(kind.name() + " wide " + std::to_string(wide));
            const SampleSeeds seeds(vertex_count(here), batch, false);
            test::expect_equal(gpu_sample(sampler, seeds.ids, 7, buffers),
                               sample_neighbours_reference(here, settings, {}, seeds.ids, 7));
            if (HasFailure()) return;
          }
        }
    }
}

TEST(NeighboursCuda, AllFanoutsOfAllDegrees) {
  GpuSampleBuffers buffers;
  const test::SampleGraph graph(graph_of_all_degrees());
  for (const bool wide : {false, true}) {
    const Both both(graph.with_ids_of(wide));
    for (const SampleKind& kind : kinds())
      for (const std::int64_t fanout : {-1, 1, 5, 8, 9, 16, 17, 30, 32, 33, 64, 100, 1000, 2500}) {
        SCOPED_TRACE(kind.name() + " fan-out " + std::to_string(fanout));
        both.check(kind.settings({fanout, 3}), {400, 1, 33}, buffers);
        if (HasFailure()) return;
      }
  }
}

// Growing and shrinking batches, one after the other through the same buffers.
TEST(NeighboursCuda, BatchesThroughTheSameBuffers) {
  GpuSampleBuffers buffers;
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(20000, 300000, 4));
  for (const bool wide : {false, true}) {
    const Both both(graph.with_ids_of(wide));
    for (const SampleKind& kind : kinds())
      for (const Fanouts& fanouts : {Fanouts{10, 5}, {4, 4, 4}, {15}}) {
        SCOPED_TRACE(kind.name());
        both.check(kind.settings(fanouts), {512, 3, 0, 2000, 1, 700}, buffers);
        if (HasFailure()) return;
      }
  }
}

// So few vertices of the graph are reached that only their places are emptied.
TEST(NeighboursCuda, SmallSamplesOfALargeGraph) {
  GpuSampleBuffers buffers;
  const test::SampleGraph graph(test::csr_of_degrees(std::vector<std::uint64_t>(200000, 4), 6));
  const Both both(graph.with_ids_of(false));
  for (const SampleKind& kind : kinds()) {
    SCOPED_TRACE(kind.name());
    both.check(kind.settings({3, 2}), {40, 100, 40, 5000, 40, 7}, buffers);
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
    const Both both(graph.with_ids_of(wide));
    for (const SampleKind& kind : kinds())
      for (const Fanouts& fanouts :
           {Fanouts{30, 30}, {1000}, {5000, 2}, {2049, 2}, {65536}, {200000}, {-1, -1}}) {
        if (wide && fanouts.size() == 1) continue;
        SCOPED_TRACE(kind.name() + " fan-out " + std::to_string(fanouts[0]));
        const NeighbourSampler sampler(both.here, kind.settings(fanouts));
        const GpuNeighbourSampler gpu(both.there.csr(), kind.settings(fanouts));
        const std::vector<std::uint64_t> seeds{10, 0, 7, 5, 9, 0};
        test::expect_equal(gpu_sample(gpu, seeds, 11, buffers),
                           sampler.sample(seeds, 11, *sampler.workspace()));
        if (HasFailure()) return;
      }
  }
}

TEST(NeighboursCuda, SeveralSamplesAtOnce) {
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(3000, 40000, 9));
  const Both both(graph.with_ids_of(false));
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

TEST(NeighboursCuda, RefusesAndGoesOn) {
  const Both both(test::random_csr<std::uint32_t>(30, 90, 9));
  const auto make = [&](const SampleSettings& settings) {
    GpuNeighbourSampler(both.there.csr(), settings);
  };
  EXPECT_EQ(error_of([&] {
              make({.fanouts = {3, 0}});
            }),
            "fan-out 0 of hop 1 is outside 1..16777216; use -1 for all edges");
  EXPECT_EQ(error_of([&] { make({.fanouts = {3}, .time = TimeRule::last}); }),
            "the latest edges cannot be taken on a GPU yet; sample on the CPU");
  GpuSampleBuffers buffers;
  const GpuNeighbourSampler sampler(both.there.csr(), {.fanouts = {3}});
  const std::vector<std::uint64_t> bad{1, 30};
  EXPECT_EQ(error_of([&] { sampler.enqueue(bad, 1, buffers, nullptr); }),
            "seed 1 is 30, outside 0..29");
  both.check({.fanouts = {3}}, {5}, buffers);
}

}  // namespace
}  // namespace plait
