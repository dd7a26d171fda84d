// The memory of a sample on the GPU, and of what makes it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/pinned_array.cuh"
#include "plait/sample/cuda/hop.cuh"
#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/cuda/places.cuh"

namespace plait {

// A little more is taken than is asked for, so that batches of nearly equal sizes soon fit.
template <class T>
void reserve_roomy(DeviceArray<T>& array, std::uint64_t size) {
  if (size > array.size()) array.reserve(size + size / 8);
}

// The same, and keeps the first `used` values. Waits for the stream if the array grows.
template <class T>
void reserve_keeping(DeviceArray<T>& array, std::uint64_t used, std::uint64_t size,
                     cudaStream_t stream) {
  if (size <= array.size()) return;
  DeviceArray<T> larger(size + size / 8);
  check_cuda(cudaMemcpyAsync(larger.data(), array.data(),
                             std::min<std::uint64_t>(used, array.size()) * sizeof(T),
                             cudaMemcpyDeviceToDevice, stream),
             "a copy on the GPU");
  check_cuda(cudaStreamSynchronize(stream), "work on the GPU");
  array = std::move(larger);
}

template <class T>
void fill_ones(DeviceArray<T>& array, std::uint64_t size, cudaStream_t stream) {
  if (size > 0)
    check_cuda(cudaMemsetAsync(array.data(), 0xff, size * sizeof(T), stream), "emptying a table");
}

inline constexpr unsigned long long kNoBadSeed = ~0ull;

struct GpuSampleBuffers::Memory {
  struct Hop {
    DeviceArray<std::uint32_t> offsets, neighbours;
    DeviceArray<EdgeOffset> edges;
  };
  std::vector<Hop> hops;
  std::size_t hop_count = 0;  // of the sample that these buffers hold
  // Seeds that the caller has on the GPU, or null; and the first place of one that is no vertex.
  const std::uint64_t* seeds_there = nullptr;
  DeviceArray<unsigned long long> bad_seed;
  PinnedArray<unsigned long long> bad_seed_here;
  DeviceArray<std::uint64_t> vertices;
  DeviceArray<std::uint32_t> trees;
  DeviceArray<HopCounts> counts;    // by hop, and one more
  DeviceArray<std::int64_t> times;  // of the seeds
  // Scratch memory of one hop, which the next hop overwrites.
  DeviceArray<std::byte> slots, scratch;
  DeviceArray<std::uint32_t> bits, before;
  DeviceArray<std::uint64_t> tables, total, eligible;
  // Places (places.cuh): places of vertices, or slots of a hash table and its keys.
  DeviceArray<std::uint32_t> place;
  DeviceArray<HashPlaces::Key> keys;
  std::uint64_t emptied = 0;  // places from the first on that hold no vertex between samples
  // On the host.
  PinnedArray<std::uint64_t> seeds_here, total_here;
  PinnedArray<std::int64_t> times_here;
  PinnedArray<HopCounts> counts_here;
  DeviceEvent done;
  bool begun = false, pending = false;  // begun, not pending: an exception came in between
  GpuSample sample;

  // Lets CUB act with scratch memory that stays.
  template <class Act>
  void with_cub(std::string_view what, Act act) {
    std::size_t bytes = 0;
    check_cuda(act(nullptr, bytes), what);
    scratch.reserve(std::max<std::size_t>(bytes, 1));
    check_cuda(act(scratch.data(), bytes), what);
  }
  void await() {
    const bool whole = std::exchange(pending, false);
    if (std::exchange(begun, false))
      check_cuda(whole ? cudaEventSynchronize(done.get()) : cudaDeviceSynchronize(),
                 "sampling on the GPU");
  }
};

}  // namespace plait
