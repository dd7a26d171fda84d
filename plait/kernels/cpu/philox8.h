// Eight Philox blocks that are computed at once: in AVX registers, or one by one elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plait/base/random.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace plait {

inline constexpr std::size_t kPhilox8Words = 32;

#if defined(__AVX2__)

// Four blocks. A word stands in the low half of 64 bits; the high halves hold anything.
struct Philox4 {
  __m256i words[4];

  // Returns the counters (low, high[0]) to (low, high[3]).
  static Philox4 counters(std::uint64_t low, const std::uint64_t* high) {
    const __m256i above = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high));
    const __m256i below = _mm256_set1_epi64x(static_cast<std::int64_t>(low));
    return {{below, _mm256_srli_epi64(below, 32), above, _mm256_srli_epi64(above, 32)}};
  }

  void round(__m256i key0, __m256i key1) {
    const __m256i a = _mm256_mul_epu32(words[0], _mm256_set1_epi64x(Philox::kMultipliers[0]));
    const __m256i b = _mm256_mul_epu32(words[2], _mm256_set1_epi64x(Philox::kMultipliers[1]));
    words[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), words[1]), key0);
    words[1] = b;
    words[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), words[3]), key1);
    words[3] = a;
  }

  // Writes 16 words, block by block.
  void store(std::uint32_t* to) const {
    const __m256i first = pairs(words[0], words[1]), second = pairs(words[2], words[3]);
    const __m256i even = _mm256_unpacklo_epi64(first, second);  // blocks 0 and 2
    const __m256i odd = _mm256_unpackhi_epi64(first, second);   // blocks 1 and 3
    auto* const out = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(out, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(even, odd, 0x31));
  }

 private:
  static __m256i pairs(__m256i low, __m256i high) {
    return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xAA);
  }
};

#endif

// Writes the blocks of the counters (low, high[0]) to (low, high[7]), one behind the other.
inline void philox8(const Philox& philox, std::uint64_t low, const std::uint64_t (&high)[8],
                    std::uint32_t (&to)[kPhilox8Words]) {
#if defined(__AVX2__)
  Philox4 a = Philox4::counters(low, high), b = Philox4::counters(low, high + 4);
  Philox::Key key = philox.key();
  for (int round = 0; round < Philox::kRounds; ++round, key = key.next()) {
    const __m256i key0 = _mm256_set1_epi64x(key.low), key1 = _mm256_set1_epi64x(key.high);
    a.round(key0, key1);
    b.round(key0, key1);
  }
  a.store(to);
  b.store(to + kPhilox8Words / 2);
#else
  for (std::size_t i = 0; i < kPhilox8Words / 4; ++i) {
    const Philox::Block block = philox(low, high[i]);
    for (std::size_t w = 0; w < 4; ++w) to[4 * i + w] = block[w];
  }
#endif
}

// Does so for (low, high) to (low, high + 7).
inline void philox8(const Philox& philox, std::uint64_t low, std::uint64_t high,
                    std::uint32_t (&to)[kPhilox8Words]) {
  const std::uint64_t all[8] = {high,     high + 1, high + 2, high + 3,
                                high + 4, high + 5, high + 6, high + 7};
  philox8(philox, low, all, to);
}

}  // namespace plait
