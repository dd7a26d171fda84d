// Two ways to add rows of gradients.
//
//   atomic    a row's floats are added as they come: 4 bytes read and 4 added per float, at what
//     the L2 cache adds. Nothing is known about the ids.
//   in order  ids are sorted with their places, by a stable radix sort; then lanes that find the
//     first place of a row add all of its rows, one after the other. So sums have the bits of the
//     CPU's. A sort of n ids of b bits moves 32 n bytes per 8 bits; a row that comes up very often
//     is summed by one group of lanes, with kInFlight rows on their way.
#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/cuda/rank_table.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;

__device__ float* row_at(const RankTable& ranks, const StoredRows& to, std::uint64_t id) {
  return reinterpret_cast<float*>(
      const_cast<std::byte*>(ranks.row(to, place_of(to, ranks.starts, id))));
}

// The atomics reach memory of other GPUs.
template <int kLanes>
__global__ void __launch_bounds__(kThreads) add_atomically(const __grid_constant__ AddRows a) {
  __shared__ RankTable ranks;
  ranks.fill(a.to);
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads / kLanes);
  const unsigned lane = threadIdx.x % kLanes;
  std::uint64_t i = blockIdx.x * std::uint64_t{kThreads / kLanes} + threadIdx.x / kLanes;
  for (; i < a.count; i += step) {
    float* const row = row_at(ranks, a.to, a.ids[i]);
    for (std::uint64_t c = lane; c < a.width; c += kLanes)
      atomicAdd_system(row + c, a.rows[i * a.rows_stride + c]);
  }
}

__global__ void __launch_bounds__(kThreads)
    number_places(std::uint32_t* places, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) places[i] = i;
}

// `places`, by sorted id: its i.
template <int kLanes>
__global__ void __launch_bounds__(kThreads)
    add_in_order(const __grid_constant__ AddRows a, const std::uint64_t* sorted,
                 const std::uint32_t* places) {
  __shared__ RankTable ranks;
  ranks.fill(a.to);
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads / kLanes);
  const unsigned lane = threadIdx.x % kLanes;
  std::uint64_t at = blockIdx.x * std::uint64_t{kThreads / kLanes} + threadIdx.x / kLanes;
  for (; at < a.count; at += step) {
    const std::uint64_t id = sorted[at];
    if (at > 0 && sorted[at - 1] == id) continue;
    float* const row = row_at(ranks, a.to, id);
    for (std::uint64_t c = lane; c < a.width; c += kLanes) {
      float sum = row[c];
      for (std::uint64_t k = at; k < a.count && sorted[k] == id; k += kInFlight) {
        float value[kInFlight];
        bool mine[kInFlight];
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          mine[j] = k + j < a.count && sorted[k + j] == id;
          value[j] = mine[j] ? a.rows[places[k + j] * a.rows_stride + c] : 0;
        }
#pragma unroll
        for (int j = 0; j < kInFlight; ++j)
          if (mine[j]) sum += value[j];
      }
      row[c] = sum;
    }
  }
}

unsigned blocks_of(std::uint64_t rows, int lanes) {
  constexpr std::uint64_t kMostBlocks = 4096;
  const auto of_block = static_cast<std::uint64_t>(kThreads / lanes);
  return static_cast<unsigned>(std::min((rows + of_block - 1) / of_block, kMostBlocks));
}

}  // namespace

void gpu_add_rows(const AddRows& a, void* stream) {
  if (a.count == 0 || a.width == 0) return;
  for_lanes<1>(a.width, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    add_atomically<kLanes>
        <<<blocks_of(a.count, kLanes), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a);
  });
  check_cuda(cudaGetLastError(), "adding rows");
}

struct GpuOrderedSums::Memory {
  DeviceArray<std::uint64_t> sorted;
  DeviceArray<std::uint32_t> numbers, places;
  DeviceArray<std::byte> scratch;
};

GpuOrderedSums::GpuOrderedSums() : memory_(std::make_unique<Memory>()) {}
GpuOrderedSums::~GpuOrderedSums() = default;

void GpuOrderedSums::add(const AddRows& a, void* at) {
  if (a.count == 0 || a.width == 0) return;
  require<DoesNotFitError>(a.count < std::uint64_t{1} << 31,
                           "{} rows are added at once; at most {} can be", a.count,
                           (std::uint64_t{1} << 31) - 1);
  auto* const stream = static_cast<cudaStream_t>(at);
  const auto count = static_cast<std::uint32_t>(a.count);
  Memory& m = *memory_;
  m.sorted.reserve(count);
  m.numbers.reserve(count);
  m.places.reserve(count);
  number_places<<<(count + kThreads - 1) / kThreads, kThreads, 0, stream>>>(m.numbers.data(),
                                                                            count);
  const int bits = std::max(1, static_cast<int>(std::bit_width(a.to.rows)));
  const auto sort = [&](void* scratch, std::size_t& bytes) {
    check_cuda(
        cub::DeviceRadixSort::SortPairs(scratch, bytes, a.ids, m.sorted.data(), m.numbers.data(),
                                        m.places.data(), count, 0, bits, stream),
        "sorting ids");
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  m.scratch.reserve(std::max<std::size_t>(bytes, 1));
  sort(m.scratch.data(), bytes);
  for_lanes<1>(a.width, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    add_in_order<kLanes>
        <<<blocks_of(a.count, kLanes), kThreads, 0, stream>>>(a, m.sorted.data(), m.places.data());
  });
  check_cuda(cudaGetLastError(), "adding rows");
}

}  // namespace plait
