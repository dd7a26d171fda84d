// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011, section 3.3).
//
// A number is a pure function of a key and a counter, so it does not depend on the order in which
// numbers are drawn, on the number of threads, or on the rank that draws it. Keys are made of a
// seed, and counters of global ids (edge number, vertex, column, epoch).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plait/base/host_device.h"

namespace plait {

// A generator with one key. It has no state, so threads may share it.
class Philox {
 public:
  // Four numbers. A std::array would not do: the GPU does not have its members.
  struct Block {
    std::uint32_t words[4];

    PLAIT_HOST_DEVICE constexpr std::uint32_t operator[](std::size_t i) const { return words[i]; }
    // The four words.
    constexpr const std::uint32_t* begin() const { return words; }
    constexpr const std::uint32_t* end() const { return words + 4; }
    friend bool operator==(const Block&, const Block&) = default;
  };

  // The seed is the key.
  PLAIT_HOST_DEVICE explicit constexpr Philox(std::uint64_t seed)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

  // Returns four independent uniform 32-bit numbers for a 128-bit counter.
  PLAIT_HOST_DEVICE constexpr Block operator()(std::uint64_t low, std::uint64_t high = 0) const {
    Block c{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
            static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
    std::uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c[2];
      c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
           static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return c;
  }

 private:
  std::uint32_t key_[2];
};

// Returns a number uniform in [0, 1): 24 bits, exact in float.
PLAIT_HOST_DEVICE constexpr float uniform_float(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Returns a number uniform in [0, 1): 53 bits, exact in double.
PLAIT_HOST_DEVICE constexpr double uniform_double(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

// Returns a number uniform in [0, bound) without division; the bias is below bound / 2^64.
PLAIT_HOST_DEVICE constexpr std::uint64_t uniform_below(std::uint64_t bound, std::uint32_t high,
                                                        std::uint32_t low) {
  const std::uint64_t bits = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

}  // namespace plait
