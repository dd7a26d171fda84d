// Sums of edges by label: a hash table of one block, with open addressing and linear probing.
// Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plait/communities/cuda/gains.cuh"

namespace plait {

// The memory is the block's shared memory or a piece of the GPU's. A sum is kept in two halves of
// 32 bits, because additions of 64 bits in shared memory are slow. There must be a slot for each
// label that is added.
struct LabelSums {
  std::uint32_t *labels, *low, *high;  // by slot
  std::uint32_t mask;                  // slots - 1

  static constexpr std::size_t kWordsPerSlot = 3;
  static constexpr std::size_t bytes(std::size_t slots) {
    return kWordsPerSlot * slots * sizeof(std::uint32_t);
  }

  // `slots` is a power of two.
  __device__ LabelSums(std::uint32_t* memory, std::uint32_t slots)
      : labels(memory),
        low(memory + slots),
        high(memory + std::size_t{2} * slots),
        mask(slots - 1) {}
  // Called by all threads of the block, which have to meet before and after.
  __device__ void clear() {
    for (std::uint32_t i = threadIdx.x; i <= mask; i += blockDim.x)
      labels[i] = kNoLabel, low[i] = 0, high[i] = 0;
  }
  __device__ std::uint32_t first_slot(std::uint32_t label) const {
    return label * 0x9E3779B1u & mask;
  }
  __device__ void add(std::uint32_t label, std::uint64_t weight) {
    std::uint32_t slot = first_slot(label);
    for (;; slot = (slot + 1) & mask) {
      std::uint32_t here = *static_cast<volatile std::uint32_t*>(labels + slot);
      if (here == kNoLabel) here = atomicCAS(labels + slot, kNoLabel, label);
      if (here == kNoLabel || here == label) break;
    }
    const auto part = static_cast<std::uint32_t>(weight);
    const std::uint32_t before = atomicAdd(low + slot, part);
    const std::uint32_t carry = static_cast<std::uint32_t>(weight >> 32) + (before + part < before);
    if (carry != 0) atomicAdd(high + slot, carry);
  }
  __device__ std::uint64_t sum(std::uint32_t slot) const {
    return std::uint64_t{high[slot]} << 32 | low[slot];
  }
};

}  // namespace plait
