// Each block is summed by itself: a scan of the counts of rows, then a kernel that writes, one warp
// per row. A block reads and writes the shard once. There are as many blocks as ranks, and this is
// done once.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_scan.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/partition/quality.h"
#include "plait/placement/block_sums.h"
#include "plait/placement/cuda/block_sums.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;

struct CountsOfRow {
  BlockToSum block;
  __host__ __device__ BlockSumCounts operator()(std::uint64_t row) const {
    return block.counts(row);
  }
};

// One warp per row, and one for the ends of the offsets.
__global__ void write_rows(const __grid_constant__ BlockToSum block, const BlockSumCounts* before,
                           const __grid_constant__ BlockSumResult out) {
  const std::uint64_t row = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / kWarp;
  if (row <= block.own)
    block.write(row, before[row], before[block.own].sums, out,
                static_cast<int>(threadIdx.x % kWarp), kWarp);
}

// Returns the counts of all rows before each row; the last are the totals.
DeviceArray<BlockSumCounts> counts_before(const BlockToSum& block, cudaStream_t stream) {
  DeviceArray<BlockSumCounts> before(block.own + 1);
  const auto counts = thrust::make_transform_iterator(thrust::counting_iterator<std::uint64_t>(0),
                                                      CountsOfRow{block});
  with_scratch("planning sums of rows", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, before.data(),
                                          cuda::std::plus<>{}, BlockSumCounts{0, 0, 0},
                                          block.own + 1, stream);
  });
  return before;
}

RowSums contract_block(DeviceShard& shard, std::size_t number, cudaStream_t stream) {
  HaloBlock& block = shard.halo[number];
  const bool weighted = shard.weights.size() > 0;
  const BlockToSum view{.offsets = shard.offsets.data(),
                        .slots = shard.slots.data(),
                        .weights = weighted ? shard.weights.data() : nullptr,
                        .own = shard.own,
                        .begin = block.begin,
                        .end = block.begin + block.rows,
                        .row = block.whole ? nullptr : block.row.data()};
  const DeviceArray<BlockSumCounts> before = counts_before(view, stream);
  BlockSumCounts total{};
  check_cuda(cudaMemcpyAsync(&total, before.data() + shard.own, sizeof(total),
                             cudaMemcpyDeviceToHost, stream),
             "planning sums of rows");
  check_cuda(cudaStreamSynchronize(stream), "planning sums of rows");
  if (!sums_are_fewer(block.rows, total.sums)) return {};

  RowSums sums{DeviceArray<EdgeOffset>(total.sums + 1), DeviceArray<std::uint32_t>(total.summed),
               DeviceArray<float>(weighted ? total.summed : 0)};
  DeviceArray<EdgeOffset> offsets(shard.own + 1);
  DeviceArray<Slot> slots(total.kept);
  DeviceArray<float> weights(weighted ? total.kept : 0);
  const auto blocks = static_cast<unsigned>(shard.own / (kThreads / kWarp) + 1);
  write_rows<<<blocks, kThreads, 0, stream>>>(
      view, before.data(),
      {offsets.data(), slots.data(), weights.data(), sums.offsets.data(), sums.row.data(),
       sums.weights.data()});
  check_cuda(cudaGetLastError(), "planning sums of rows");
  check_cuda(cudaStreamSynchronize(stream), "planning sums of rows");

  shard.offsets = std::move(offsets);
  shard.slots = std::move(slots);
  shard.weights = std::move(weights);
  for (std::size_t later = number + 1; later < shard.halo.size(); ++later)
    shard.halo[later].begin -= block.rows - total.sums;
  block = {block.owner, block.begin, total.sums, false, {}};
  return sums;
}

}  // namespace

std::vector<RowSums> contract_blocks(DeviceShard& shard, cudaStream_t stream) {
  std::vector<RowSums> sums;
  for (std::size_t number = 0; number < shard.halo.size(); ++number)
    sums.push_back(contract_block(shard, number, stream));
  return sums;
}

}  // namespace plait
