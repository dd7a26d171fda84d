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

    // A place that is known only when the program runs would put the words into memory on a GPU,
    // far from registers: there they are selected.
    PLAIT_HOST_DEVICE constexpr std::uint32_t operator[](std::size_t i) const {
#ifdef __CUDA_ARCH__
      const std::uint32_t low = i & 1 ? words[1] : words[0], high = i & 1 ? words[3] : words[2];
      return i & 2 ? high : low;
#else
      return words[i];
#endif
    }
    // The four words.
    constexpr const std::uint32_t* begin() const { return words; }
    constexpr const std::uint32_t* end() const { return words + 4; }
    friend bool operator==(const Block&, const Block&) = default;
  };

  static constexpr int kRounds = 10;
  static constexpr std::uint32_t kMultipliers[2] = {0xD2511F53u, 0xCD9E8D57u};
  // The key of a round, and of the next one.
  struct Key {
    std::uint32_t low, high;
    PLAIT_HOST_DEVICE constexpr Key next() const { return {low + 0x9E3779B9u, high + 0xBB67AE85u}; }
  };

  // The seed is the key.
  PLAIT_HOST_DEVICE explicit constexpr Philox(std::uint64_t seed)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

  // Returns the key of the first round.
  PLAIT_HOST_DEVICE constexpr Key key() const { return key_; }

  // Returns four independent uniform 32-bit numbers for a 128-bit counter.
  PLAIT_HOST_DEVICE constexpr Block operator()(std::uint64_t low, std::uint64_t high = 0) const {
    Block c{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
            static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
    Key k = key_;
    for (int round = 0; round < kRounds; ++round, k = k.next()) {
      const std::uint64_t a = std::uint64_t{kMultipliers[0]} * c[0];
      const std::uint64_t b = std::uint64_t{kMultipliers[1]} * c[2];
      c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k.low, static_cast<std::uint32_t>(b),
           static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k.high, static_cast<std::uint32_t>(a)};
    }
    return c;
  }

 private:
  Key key_;
};

// Returns a number uniform in [0, 1): 24 bits, exact in float. Many CPUs convert signed numbers
// only.
PLAIT_HOST_DEVICE constexpr float uniform_float(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits >> 8)) * 0x1p-24f;
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
