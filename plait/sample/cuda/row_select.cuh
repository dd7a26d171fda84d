// A block of threads keeps some edges of a row in their order, and finds the least of their keys.
// Every function is called by all threads of the block, which see each other's
// writes to memory when it returns.
#pragma once

#include <cstdint>
#include <cub/block/block_scan.cuh>

namespace plait {

// Shared memory of a block. It has as many bins as threads, so that a thread has one of them.
template <int kThreads>
struct RowMemory {
  using Scan = cub::BlockScan<unsigned long long, kThreads>;

  typename Scan::TempStorage scan;
  unsigned long long bins[kThreads];
  double weights[kThreads];
  struct {
    unsigned long long digit, wanted, count;
  } bin;
};

// Calls take(i, p) for each p of 0 .. size - 1 that keep(p) accepts, i = 0, 1, ... in their order.
// Returns their number.
template <int kThreads, class Keep, class Take>
__device__ std::uint64_t keep_in_order(std::uint64_t size, RowMemory<kThreads>& memory, Keep keep,
                                       Take take) {
  std::uint64_t found = 0;
  for (std::uint64_t first = 0; first < size; first += kThreads) {
    const std::uint64_t p = first + threadIdx.x;
    const unsigned long long kept = p < size && keep(p) ? 1 : 0;
    unsigned long long before = 0, total = 0;
    typename RowMemory<kThreads>::Scan(memory.scan).ExclusiveSum(kept, before, total);
    __syncthreads();  // before the scan's memory is used again
    if (kept != 0) take(found + before, p);
    found += total;
  }
  __syncthreads();
  return found;
}

// The least keys: those whose bits from `shift` on are below `prefix`, and the first `equal` of
// those whose bits there are `prefix`.
struct LeastKeys {
  std::uint64_t prefix, equal;
  unsigned shift;
};

// Finds the `count` least of `size` keys, 0 < count <= size; of equal keys the first ones count. A
// radix selection: a digit of the greatest of them after the other, the most significant first,
// until no choice is left.
template <int kThreads>
__device__ LeastKeys least_keys(const std::uint64_t* keys, std::uint64_t size, std::uint64_t count,
                                RowMemory<kThreads>& memory) {
  constexpr unsigned kDigit = kThreads == 256 ? 8 : 5;  // bits
  static_assert(1 << kDigit == kThreads);
  LeastKeys least{0, count, 64};
  do {
    const unsigned bits = least.shift < kDigit ? least.shift : kDigit;
    const unsigned shift = least.shift - bits;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    memory.bins[threadIdx.x] = 0;
    __syncthreads();
    for (std::uint64_t i = threadIdx.x; i < size; i += kThreads) {
      const std::uint64_t key = keys[i];
      if (least.shift == 64 || key >> least.shift == least.prefix)
        atomicAdd(memory.bins + (key >> shift & mask), 1ull);
    }
    __syncthreads();
    const unsigned long long here = memory.bins[threadIdx.x];
    unsigned long long before = 0;
    typename RowMemory<kThreads>::Scan(memory.scan).ExclusiveSum(here, before);
    if (before < least.equal && least.equal <= before + here)  // true in one thread
      memory.bin = {threadIdx.x, least.equal - before, here};
    __syncthreads();
    least = {least.prefix << bits | memory.bin.digit, memory.bin.wanted, shift};
  } while (least.shift > 0 && memory.bin.count != least.equal);
  __syncthreads();
  return least;
}

// Calls take(i, p) for the places p of the least keys, in ascending order.
template <int kThreads, class Take>
__device__ void take_least(const std::uint64_t* keys, std::uint64_t size, const LeastKeys& least,
                           RowMemory<kThreads>& memory, Take take) {
  constexpr unsigned kHalf = 32;  // of a sum: equal keys are counted above, lesser ones below
  std::uint64_t lesser = 0, equal = 0;
  for (std::uint64_t first = 0; first < size; first += kThreads) {
    const std::uint64_t p = first + threadIdx.x;
    const std::uint64_t bits = p < size ? keys[p] >> least.shift : ~std::uint64_t{0};
    const bool is_lesser = p < size && bits < least.prefix;
    const bool is_equal = p < size && bits == least.prefix;
    const unsigned long long mine =
        static_cast<unsigned long long>(is_equal) << kHalf | static_cast<unsigned>(is_lesser);
    unsigned long long before = 0, total = 0;
    typename RowMemory<kThreads>::Scan(memory.scan).ExclusiveSum(mine, before, total);
    __syncthreads();  // before the scan's memory is used again
    const std::uint64_t equal_before = equal + (before >> kHalf);
    const std::uint64_t taken = equal_before < least.equal ? equal_before : least.equal;
    if (is_lesser || (is_equal && equal_before < least.equal))
      take(lesser + static_cast<std::uint32_t>(before) + taken, p);
    lesser += static_cast<std::uint32_t>(total);
    equal += total >> kHalf;
  }
  __syncthreads();
}

// Writes the sums of weight(0), weight(1), ... up to each, added one after the other by one thread:
// another order would give other bits.
template <int kThreads, class Weight>
__device__ void write_sums(std::uint64_t size, double* sums, RowMemory<kThreads>& memory,
                           Weight weight) {
  double sum = 0;
  for (std::uint64_t first = 0; first < size; first += kThreads) {
    const std::uint64_t i = first + threadIdx.x;
    if (i < size) memory.weights[threadIdx.x] = weight(i);
    __syncthreads();
    if (threadIdx.x == 0)
      for (unsigned j = 0; j < kThreads && first + j < size; ++j)
        memory.weights[j] = sum += memory.weights[j];
    __syncthreads();
    if (i < size) sums[i] = memory.weights[threadIdx.x];
  }
  __syncthreads();
}

}  // namespace plait
