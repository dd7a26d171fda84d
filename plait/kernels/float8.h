// Eight floats that are worked on at once: one AVX register, or a plain array elsewhere.
//
// Both forms give the same bits: every lane is its own chain of correctly rounded operations, and
// a multiply and an add are fused where fma() is called and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "plait/base/number.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#define PLAIT_FLOAT8_AVX
#else
#include <algorithm>
#include <cmath>
#endif

namespace plait {

inline constexpr int kFloat8 = 8;

// Calls f(0), ... f(N - 1), each with a constant, so that arrays indexed by it live in registers.
template <std::size_t N, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<N>{});
}

#ifdef PLAIT_FLOAT8_AVX

// Eight floats. load() and store() take any address, load() of numbers of any type (base/number.h);
// operators work lane by lane; fma(a, b, c) is a b + c, rounded once; if_greater(a, b, yes, no) is
// yes where a > b, else no.
struct Float8 {
  __m256 lanes;

  static Float8 all(float value) { return {_mm256_set1_ps(value)}; }
  static Float8 load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static Float8 load(const BFloat16* from) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words(from)), 16))};
  }
  static Float8 load(const Float16* from) { return {_mm256_cvtph_ps(words(from))}; }
  void store(float* to) const { _mm256_storeu_ps(to, lanes); }

  friend Float8 operator+(Float8 a, Float8 b) { return {_mm256_add_ps(a.lanes, b.lanes)}; }
  friend Float8 operator*(Float8 a, Float8 b) { return {_mm256_mul_ps(a.lanes, b.lanes)}; }
  friend Float8 fma(Float8 a, Float8 b, Float8 c) {
    return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  }
  friend Float8 if_greater(Float8 a, Float8 b, Float8 yes, Float8 no) {
    return {_mm256_blendv_ps(no.lanes, yes.lanes, _mm256_cmp_ps(a.lanes, b.lanes, _CMP_GT_OQ))};
  }

 private:
  static __m128i words(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
};

// Loads and stores only the first `count` lanes (1 to 8). The memory behind the others is not
// touched; they read as 0.
class FirstLanes {
 public:
  explicit FirstLanes(int count)
      : mask_(_mm256_cmpgt_epi32(_mm256_set1_epi32(count),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))),
        count_(count) {}
  Float8 load(const float* from) const { return {_mm256_maskload_ps(from, mask_)}; }
  template <class T>
  Float8 load(const T* from) const {  // numbers of 16 bits have no such mask
    T numbers[kFloat8] = {};
    for (int i = 0; i < count_; ++i) numbers[i] = from[i];
    return Float8::load(numbers);
  }
  void store(float* to, Float8 value) const { _mm256_maskstore_ps(to, mask_, value.lanes); }

 private:
  __m256i mask_;
  int count_;
};

// Moves lanes: lane i of the result is lane from[i] (0 to 7) of the argument.
class LaneMove {
 public:
  explicit LaneMove(const int (&from)[kFloat8])
      : from_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))) {}
  Float8 operator()(Float8 a) const { return {_mm256_permutevar8x32_ps(a.lanes, from_)}; }

 private:
  __m256i from_;
};

#else

// Eight floats without AVX.
struct Float8 {
  float lanes[kFloat8];

  template <class F>
  static Float8 each(F&& value_of_lane) {
    Float8 result;
    for (int i = 0; i < kFloat8; ++i) result.lanes[i] = value_of_lane(i);
    return result;
  }
  static Float8 all(float value) {
    return each([&](int) { return value; });
  }
  template <class T>
  static Float8 load(const T* from) {
    return each([&](int i) { return widened(from[i]); });
  }
  void store(float* to) const {
    for (int i = 0; i < kFloat8; ++i) to[i] = lanes[i];
  }

  friend Float8 operator+(const Float8& a, const Float8& b) {
    return each([&](int i) { return a.lanes[i] + b.lanes[i]; });
  }
  friend Float8 operator*(const Float8& a, const Float8& b) {
    return each([&](int i) { return a.lanes[i] * b.lanes[i]; });
  }
  friend Float8 fma(const Float8& a, const Float8& b, const Float8& c) {
    return each([&](int i) { return std::fma(a.lanes[i], b.lanes[i], c.lanes[i]); });
  }
  friend Float8 if_greater(const Float8& a, const Float8& b, const Float8& yes, const Float8& no) {
    return each([&](int i) { return a.lanes[i] > b.lanes[i] ? yes.lanes[i] : no.lanes[i]; });
  }
};

// The first lanes without AVX.
class FirstLanes {
 public:
  explicit FirstLanes(int count) : count_(count) {}
  template <class T>
  Float8 load(const T* from) const {
    return Float8::each([&](int i) { return i < count_ ? widened(from[i]) : 0.0f; });
  }
  void store(float* to, const Float8& value) const {
    for (int i = 0; i < count_; ++i) to[i] = value.lanes[i];
  }

 private:
  int count_;
};

// Moves lanes without AVX.
class LaneMove {
 public:
  explicit LaneMove(const int (&from)[kFloat8]) { std::copy_n(from, kFloat8, from_); }
  Float8 operator()(const Float8& a) const {
    return Float8::each([&](int i) { return a.lanes[from_[i]]; });
  }

 private:
  int from_[kFloat8];
};

#endif

// Loads and stores all eight lanes, as FirstLanes does some.
struct AllLanes {
  Float8 load(const float* from) const { return Float8::load(from); }
  void store(float* to, Float8 value) const { value.store(to); }
};

// Calls use(c, lanes) for columns begin .. end - 1, eight at a time; the last ones may be fewer.
template <class Use>
[[gnu::always_inline]] inline void by_eight(std::uint64_t begin, std::uint64_t end, Use&& use) {
  for (; begin + kFloat8 <= end; begin += kFloat8) use(begin, AllLanes{});
  if (begin < end) use(begin, FirstLanes(static_cast<int>(end - begin)));
}

}  // namespace plait
