// A hash of memory that depends neither on its address nor on how the work is shared. It finds out
// whether arrays are equal; it does not resist somebody who makes two arrays with equal hashes.
//
// Encoding: the sums modulo 2^64 of two functions of each 8 bytes and their place; the last word is
// filled up by zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plait/base/host_device.h"

namespace plait {

// The hash, and its update. Words may be added in any order.
struct WordHash {
  std::uint64_t low = 0, high = 0;

  // Adds a word that stands at a place, both counted in words of 8 bytes.
  PLAIT_HOST_DEVICE void add(std::uint64_t word, std::uint64_t place) {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio, odd
    const std::uint64_t key = mix(place * kGolden + 1);
    low += mix(word ^ key);
    high += mix(word + (key << 1 | 1));
  }

 private:
  // The mix is one to one; every bit of x reaches every bit of the result (SplitMix64: Steele, Lea
  // and Flood, OOPSLA 2014, section 3).
  PLAIT_HOST_DEVICE static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }
};

// Returns the hash of host memory, by all threads.
WordHash hash_words(std::span<const std::byte> bytes);

// Returns the same hash of memory of the current GPU, which begins at a multiple of 8 bytes (Error
// otherwise). Waits for the cudaStream_t. A build without CUDA throws UsageError.
WordHash gpu_hash_words(std::span<const std::byte> bytes, void* stream);

}  // namespace plait
