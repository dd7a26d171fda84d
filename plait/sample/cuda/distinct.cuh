// Draws without replacement by a block of threads: Floyd's algorithm (draw.h) for all numbers at
// once. A hash table finds the first i that drew each number; each thread then follows the chain of
// its own numbers.
#pragma once

#include <bit>
#include <cstdint>

#include "plait/sample/draw.h"

namespace plait {

// Returns the words of the table for so many numbers.
inline std::uint64_t distinct_slots(std::uint64_t count) { return std::bit_ceil(2 * count); }

// The first number i that drew each position, in memory of one block. Encoding of a word: the
// position above, i in the lower 24 bits (kMostFanout).
struct FirstDraws {
  using Word = unsigned long long;
  static constexpr Word kEmpty = ~Word{0};
  static constexpr unsigned kBits = 24;
  static_assert(kMostFanout == std::uint64_t{1} << kBits);

  Word* words;
  std::uint64_t mask;

  // Called by all threads of a block, as the next: empties the table for so many numbers. It then
  // has distinct_slots() words at most.
  __device__ void clear(std::uint64_t count) {
    mask = 1;
    while (mask < 2 * count - 1) mask = 2 * mask + 1;
    for (std::uint64_t s = threadIdx.x; s <= mask; s += blockDim.x) words[s] = kEmpty;
    __syncthreads();
  }
  // Enters the numbers of choose_distinct().
  __device__ void enter_all(const VertexDraws& draws, std::uint64_t population,
                            std::uint64_t count) const {
    for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x)
      enter(draws.below(population - count + i + 1, i, population), i);
    __syncthreads();
  }

  __device__ std::uint64_t slot(std::uint64_t position) const {
    return position * 0x9E3779B97F4A7C15u >> 32 & mask;
  }
  // Notes that `position` of the list has been drawn as number `i`.
  __device__ void enter(std::uint64_t position, std::uint64_t i) const {
    const Word word = position << kBits | i;
    for (std::uint64_t s = slot(position);; s = (s + 1) & mask) {
      const Word old = atomicCAS(words + s, kEmpty, word);
      if (old == kEmpty) return;
      if (old >> kBits == position) {
        atomicMin(words + s, word);
        return;
      }
    }
  }
  __device__ std::uint64_t find(std::uint64_t position) const {
    std::uint64_t s = slot(position);
    while (words[s] >> kBits != position) s = (s + 1) & mask;
    return words[s] & ((Word{1} << kBits) - 1);
  }
};

// Returns the position that Floyd's algorithm gives number i, once all numbers are entered. The
// chain of numbers falls, and is short: of the order of the logarithm of i.
__device__ inline std::uint64_t settled(const VertexDraws& draws, const FirstDraws& firsts,
                                        std::uint64_t population, std::uint64_t count,
                                        std::uint64_t i) {
  const std::uint64_t base = population - count;
  const std::uint64_t own = draws.below(base + i + 1, i, population);
  std::uint64_t number = own;
  for (std::uint64_t at = i;;) {
    if (firsts.find(number) < at) return base + i;
    if (number < base || number - base >= at) return own;
    at = number - base;
    number = draws.below(base + at + 1, at, population);
  }
}

}  // namespace plait
