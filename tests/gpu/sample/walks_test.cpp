// Random walks on the GPU: the vertices of the CPU's.
#include "plait/sample/cuda/walks.h"

#include <gtest/gtest.h>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/sample_case.h"

namespace plait {
namespace {

std::vector<std::uint64_t> gpu_walk(const GpuRandomWalks& walks, const WalkSettings& settings,
                                    std::span<const std::uint64_t> starts, std::uint64_t key) {
  const DeviceArray<std::uint64_t> there(starts);
  DeviceArray<std::uint64_t> found(starts.size() * (settings.length + 1));
  walks.enqueue(settings, there.data(), starts.size(), key, found.data(), nullptr);
  return found.to_host();
}

// With sorted and unsorted rows, and p and q by which few proposals are taken.
TEST(WalksCuda, EqualTheCpus) {
  std::vector<test::SampleGraph> graphs = test::sample_graphs();
  graphs.emplace_back(test::csr_of_degrees(std::vector<std::uint64_t>(3000, 20), 3));
  for (const test::SampleGraph& graph : graphs)
    for (const bool wide : {false, true}) {
      const AnyCsr here = graph.with_ids_of(wide);
      const GpuGraph there(here);
      for (const bool weighted : {false, true}) {
        const RandomWalks walks(
            here, weighted ? std::span<const float>(graph.weights) : std::span<const float>());
        const GpuRandomWalks gpu(there.csr(), walks);
        for (const WalkSettings& settings :
             {WalkSettings{},
              {.length = 0},
              {.length = 20},
              {.length = 20, .p = 0.1, .q = 3},
              {.length = 20, .p = 1e-6, .q = 2},
              {.length = 20, .p = 2, .q = 0.5, .restart = 0.1},
              {.length = 5, .q = 3, .first = std::uint64_t{1} << 40}})
          for (const std::size_t batch : {0, 1, 3000}) {
            const test::SampleSeeds starts(vertex_count(here), batch, false);
            const auto expected = walks.walk(settings, starts.ids, 7);
            EXPECT_EQ(gpu_walk(gpu, settings, starts.ids, 7),
                      std::vector<std::uint64_t>(expected.begin(), expected.end()))
                << weighted << " " << settings.p << " " << batch;
            if (HasFailure()) return;
          }
      }
    }
}

TEST(WalksCuda, Refuses) {
  const test::SampleGraph graph(test::random_csr<std::uint64_t>(30, 90, 9));
  const AnyCsr here = graph.with_ids_of(false);
  const GpuGraph there(here);
  const GpuRandomWalks gpu(there.csr(), RandomWalks(here));
  EXPECT_EQ(error_of([&] { gpu_walk(gpu, {.p = -1}, std::vector<std::uint64_t>{1}, 1); }),
            "p is -1, outside 1e-09..1000000000");
}

}  // namespace
}  // namespace plait
