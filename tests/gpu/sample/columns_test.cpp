// Columns of samples on the GPU against loops over their hops.
#include "plait/sample/cuda/columns.h"

#include <gtest/gtest.h>

#include "plait/base/cuda/cuda.cuh"
#include "tests/support/columns_case.h"
#include "tests/support/sample_case.h"

namespace plait::test {
namespace {

using Column = DeviceArray<std::int64_t>;

Columns on_gpu(const GpuSample& sample, const Columns& like) {
  const Columns blank = unwritten(like);
  const auto put = [](const std::vector<std::int64_t>& values) {
    return Column(std::span<const std::int64_t>(values));
  };
  Column row = put(blank.row), col = put(blank.col), edge = put(blank.edge);
  Column node = put(blank.node), tree = put(blank.tree);
  gpu_write_columns(sample, {row.data(), col.data(), edge.data(), node.data(), tree.data()},
                    nullptr);
  return {row.to_host(), col.to_host(), edge.to_host(), node.to_host(), tree.to_host()};
}

TEST(ColumnsCuda, AreTheHopsOneAfterTheOther) {
  std::vector<SampleGraph> graphs = sample_graphs();
  graphs.emplace_back(csr_of_degrees(std::vector<std::uint64_t>(9000, 3), 4));
  GpuSampleBuffers buffers;
  for (const SampleGraph& graph : graphs) {
    const GpuGraph there(graph.graph);
    for (const bool disjoint : {false, true})
      for (const std::vector<std::int64_t>& fanouts :
           {std::vector<std::int64_t>{}, {2}, {3, 2, 4}, {-1, -1}}) {
        const SampleSettings settings{.fanouts = fanouts, .disjoint = disjoint};
        const GpuNeighbourSampler sampler(there.csr(), settings);
        for (const std::size_t batch : {0, 1, 6, 5000}) {
          const SampleSeeds seeds(there.csr().vertices, batch, false);
          const GpuSample& sample = sampler.sample(seeds.ids, 5, buffers, nullptr);
          const Columns wanted = columns_of(to_host(sample));
          EXPECT_EQ(on_gpu(sample, wanted), wanted);
          if (HasFailure()) return;
        }
      }
  }
}

}  // namespace
}  // namespace plait::test
