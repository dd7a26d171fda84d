// A quotient graph from sorted keys of its edges (labelled_edges.cuh): the second half of it.
// Internal to this room.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cstdint>
#include <cub/device/device_reduce.cuh>

#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/lower_bound.h"
#include "plait/communities/cuda/on_stream.cuh"
#include "plait/communities/cuda/quotient.cuh"

namespace plait {

// Tells whether a sorted key is the first of its kind.
template <class Key>
struct IsHead {
  const Key* keys;
  __host__ __device__ std::uint64_t operator()(std::uint64_t i) const {
    return i == 0 || keys[i] != keys[i - 1];
  }
};

template <class Key>
__global__ void write_rows(const Key* keys, std::uint64_t entries, std::uint32_t communities,
                           int bits, EdgeOffset* offsets, std::uint32_t* neighbours) {
  const std::uint64_t i = item_of_thread();
  if (i <= communities) offsets[i] = lower_bound(keys, 0, entries, i << bits);
  if (i < entries)
    neighbours[i] = static_cast<std::uint32_t>(std::uint64_t{keys[i]} & ((1ull << bits) - 1));
}

// Sums weights by community. Lanes of one community, in most warps all, add at once.
template <class Key>
__global__ void sum_rows(const Key* keys, const std::uint64_t* weights, std::uint64_t entries,
                         int bits, Count* sums) {
  const std::uint64_t i = item_of_thread();
  const std::uint64_t none = ~0ull;
  const std::uint64_t row = i < entries ? std::uint64_t{keys[i]} >> bits : none;
  Count weight = i < entries ? weights[i] : 0;
  if (__all_sync(kAll, row == __shfl_sync(kAll, row, 0))) {
    weight = sum_of_warp(weight);
    if (threadIdx.x % kWarp != 0) return;
  }
  if (row != none) atomicAdd(sums + row, weight);
}

// Returns how many different keys there are. Waits for the stream.
template <class Key>
std::uint64_t distinct_keys(const Key* keys, std::uint64_t count, cudaStream_t stream) {
  DeviceArray<std::uint64_t> number = zeros_of<std::uint64_t>(1, stream);
  if (count > 0)
    with_stream_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      const auto heads = thrust::make_transform_iterator(
          thrust::counting_iterator<std::uint64_t>(0), IsHead<Key>{keys});
      return cub::DeviceReduce::Sum(scratch, bytes, heads, number.data(), count, stream);
    });
  return read_back(number.data(), stream);
}

// Returns all of the quotient but the degrees and the total. Weights of equal keys are added.
template <class Key, class Weights>
DeviceQuotient quotient_of_sorted(const Key* keys, Weights weights, std::uint64_t count,
                                  std::uint32_t communities, int bits, cudaStream_t stream) {
  const std::uint64_t entries = distinct_keys(keys, count, stream);
  DeviceArray<Key> distinct = array_of<Key>(entries, stream);
  DeviceQuotient to;
  to.communities = communities;
  to.weights = array_of<std::uint64_t>(entries, stream);
  to.neighbours = array_of<std::uint32_t>(entries, stream);
  to.offsets = array_of<EdgeOffset>(communities + std::uint64_t{1}, stream);
  to.outer = zeros_of<std::uint64_t>(communities, stream);
  if (count > 0) {
    DeviceArray<std::uint64_t> number = array_of<std::uint64_t>(1, stream);
    with_stream_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceReduce::ReduceByKey(scratch, bytes, keys, distinct.data(), weights,
                                            to.weights.data(), number.data(), cuda::std::plus<>{},
                                            count, stream);
    });
  }
  write_rows<<<blocks_of_items(std::max<std::uint64_t>(entries, communities + std::uint64_t{1})),
               kThreadsOfItems, 0, stream>>>(distinct.data(), entries, communities, bits,
                                             to.offsets.data(), to.neighbours.data());
  if (entries > 0)
    sum_rows<<<blocks_of_items(entries), kThreadsOfItems, 0, stream>>>(
        distinct.data(), to.weights.data(), entries, bits, counts_in(to.outer));
  check_launch();
  return to;
}

}  // namespace plait
