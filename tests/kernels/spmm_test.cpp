// spmm against spmm_reference and against sums known by hand, bit for bit where bits are promised.
#include "plait/kernels/spmm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/number.h"
#include "plait/base/random.h"

namespace plait {
namespace {

constexpr float kUntouched = -12345.5f;

// Numbers in [-1, 1) drawn one after the other.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : random_(seed) {}
  float next() { return 2.0f * uniform_float(random_(count_++)[0]) - 1.0f; }
  std::uint64_t below(std::uint64_t bound) {
    const auto block = random_(count_++);
    return uniform_below(bound, block[0], block[1]);
  }
  std::vector<float> many(std::size_t size) {
    std::vector<float> values(size);
    for (float& value : values) value = next();
    return values;
  }

 private:
  Philox random_;
  std::uint64_t count_ = 0;
};

// A product with all that it reads. y has guards between its rows and at its end.
struct Problem {
  std::vector<EdgeOffset> begin, end;
  std::vector<Slot> columns;
  std::vector<float> weights, x, scale;
  std::uint64_t width = 0, x_stride = 0, y_stride = 0;
  std::size_t shift = 0;  // floats by which x and y are off a cache line's alignment
  RowSource source;       // used instead of x where it has a base

  SpmmArgs args(std::vector<float>& y) const {
    y.assign(begin.size() * y_stride + shift + 1, kUntouched);
    SpmmArgs args;
    args.begin = begin;
    args.end = end;
    args.columns = columns.data();
    args.weights = weights.empty() ? nullptr : weights.data();
    args.x = source;
    if (!source.base) args.x.base = x.data() + shift;
    args.x.stride = x_stride;
    args.width = width;
    args.y = y.data() + shift;
    args.y_stride = y_stride;
    args.row_scale = scale.empty() ? nullptr : scale.data();
    return args;
  }
};

struct Shape {
  std::vector<std::uint64_t> degrees;
  std::uint64_t x_rows = 1;
  std::uint64_t width = 1;
  std::uint64_t x_padding = 0;
  std::uint64_t y_padding = 0;
  std::size_t shift = 0;
  bool weighted = false;
  bool scaled = false;
};

Problem make_problem(const Shape& shape, std::uint64_t seed = 1) {
  Numbers numbers(seed);
  Problem p;
  for (const std::uint64_t degree : shape.degrees) {
    p.begin.push_back(p.columns.size());
    for (std::uint64_t k = 0; k < degree; ++k)
      p.columns.push_back(static_cast<Slot>(numbers.below(shape.x_rows)));
    p.end.push_back(p.columns.size());
  }
  p.width = shape.width;
  p.x_stride = shape.width + shape.x_padding;
  p.y_stride = shape.width + shape.y_padding;
  p.shift = shape.shift;
  p.x = numbers.many(shape.x_rows * p.x_stride + shape.shift);
  // Padding must not reach any sum.
  for (std::size_t i = shape.shift; i < p.x.size(); ++i)
    if ((i - shape.shift) % p.x_stride >= p.width) p.x[i] = std::numeric_limits<float>::quiet_NaN();
  if (shape.weighted) p.weights = numbers.many(p.columns.size());
  if (shape.scaled) p.scale = numbers.many(shape.degrees.size());
  return p;
}

std::vector<std::uint64_t> random_degrees(std::size_t rows, std::uint64_t most) {
  Numbers numbers(99);
  std::vector<std::uint64_t> degrees(rows);
  for (auto& degree : degrees) degree = numbers.below(most + 1);
  return degrees;
}

std::vector<float> run(const Problem& problem) {
  std::vector<float> y;
  spmm(problem.args(y));
  return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Every element is within 1e-6 of the sum of the largest absolute values there can be (1 per edge);
// memory outside the rows is not written.
void expect_matches_reference(const Problem& problem) {
  const std::vector<float> y = run(problem);
  std::vector<float> expected;
  spmm_reference(problem.args(expected));
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool inside = i >= problem.shift && i + 1 < y.size() &&
                        (i - problem.shift) % problem.y_stride < problem.width;
    if (!inside) {
      ASSERT_EQ(y[i], kUntouched) << "written outside the rows, at " << i;
      continue;
    }
    const std::size_t row = (i - problem.shift) / problem.y_stride;
    const double degree = static_cast<double>(problem.end[row] - problem.begin[row]);
    ASSERT_NEAR(y[i], expected[i], 1e-6 * (1 + degree)) << "row " << row;
  }
}

std::vector<std::uint64_t> all_widths() {
  std::vector<std::uint64_t> widths;
  for (std::uint64_t width = 1; width <= 40; ++width) widths.push_back(width);
  for (std::uint64_t width : {63, 64, 65, 127, 128, 129, 300, 1024}) widths.push_back(width);
  return widths;
}

// Values are compared, so that it is seen when spmm and spmm_reference are wrong alike.
TEST(Spmm, SumsByHand) {
  Problem p;
  p.begin = {0, 2, 2};
  p.end = {2, 2, 5};
  p.columns = {1, 2, 0, 0, 2};
  p.x = {1, 2, 10, 20, 100, 200};
  p.weights = {1, -1, 0.5f, 2, 3};
  p.scale = {1, 7, 2};
  p.width = p.x_stride = p.y_stride = 2;
  const std::vector<float> weighted{-90, -180, 0, 0, 605, 1210, kUntouched};
  EXPECT_EQ(run(p), weighted);
  std::vector<float> y;
  spmm_reference(p.args(y));
  EXPECT_EQ(y, weighted);

  p.weights.clear();
  p.scale.clear();
  const std::vector<float> plain{110, 220, 0, 0, 102, 204, kUntouched};
  EXPECT_EQ(run(p), plain);
  spmm_reference(p.args(y));
  EXPECT_EQ(y, plain);
}

class SpmmWidth : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(All, SpmmWidth, testing::ValuesIn(all_widths()));

TEST_P(SpmmWidth, MatchesReference) {
  for (const bool weighted : {false, true})
    for (const bool scaled : {false, true}) {
      SCOPED_TRACE(testing::Message() << "weighted " << weighted << " scaled " << scaled);
      expect_matches_reference(make_problem({.degrees = random_degrees(60, 150),
                                             .x_rows = 70,
                                             .width = GetParam(),
                                             .weighted = weighted,
                                             .scaled = scaled}));
    }
}

TEST_P(SpmmWidth, StridesAndAlignment) {
  for (const std::size_t shift : {1, 3, 8, 13})
    expect_matches_reference(make_problem({.degrees = random_degrees(40, 30),
                                           .x_rows = 50,
                                           .width = GetParam(),
                                           .x_padding = shift * 2 + 1,
                                           .y_padding = shift,
                                           .shift = shift,
                                           .weighted = shift % 2 == 0}));
}

TEST_P(SpmmWidth, RowsOnCacheLines) {
  const std::uint64_t width = GetParam(), stride = (width + 15) / 16 * 16;
  for (const bool weighted : {false, true}) {
    Problem p = make_problem({.degrees = random_degrees(50, 70),
                              .x_rows = 40,
                              .width = width,
                              .x_padding = stride - width,
                              .weighted = weighted});
    Buffer<float> aligned(p.x.size());
    std::copy(p.x.begin(), p.x.end(), aligned.data());
    p.source.base = aligned.data();
    expect_matches_reference(p);
  }
}

// Integers are exact in float, so every order of summing gives the same: equality, not nearness.
TEST_P(SpmmWidth, ExactOnIntegers) {
  Problem p = make_problem({.degrees = random_degrees(80, 100), .x_rows = 90, .width = GetParam()});
  for (float& value : p.x) value = std::isnan(value) ? value : std::round(value * 50);
  std::vector<float> expected;
  spmm_reference(p.args(expected));
  EXPECT_TRUE(same_bits(run(p), expected));
}

// Sums of narrow rows have the bits of sums of the same numbers as floats.
TEST_P(SpmmWidth, NarrowRows) {
  for (const DType type : {DType::bf16, DType::f16})
    with_number(type, [&]<class T>(T) {
      Problem p = make_problem({.degrees = random_degrees(50, 90),
                                .x_rows = 30,
                                .width = GetParam(),
                                .x_padding = 3,
                                .weighted = type == DType::f16,
                                .scaled = true});
      std::vector<T> narrow;
      for (float& value : p.x) {
        narrow.push_back(rounded<T>(value));
        value = widened(narrow.back());
      }
      std::vector<float> y, expected;
      SpmmArgs args = p.args(y);
      args.x.base = reinterpret_cast<const float*>(narrow.data());
      args.x_type = type;
      spmm(args);
      EXPECT_TRUE(same_bits(y, run(p)));
      spmm_reference(p.args(expected));
      spmm_reference(args);
      EXPECT_TRUE(same_bits(y, expected));
    });
}

TEST(Spmm, NoRows) {
  Problem p = make_problem({.degrees = {}, .x_rows = 3, .width = 8});
  expect_matches_reference(p);
  spmm(SpmmArgs{});
}

TEST(Spmm, NoEdges) {
  Problem p = make_problem({.degrees = std::vector<std::uint64_t>(20000, 0), .width = 5});
  const auto y = run(p);
  for (std::size_t i = 0; i + 1 < y.size(); ++i) ASSERT_EQ(y[i], 0.0f);
  p.columns.clear();
  p.x.clear();
  SpmmArgs args = p.args(p.weights);
  args.columns = nullptr;
  args.x.base = nullptr;
  spmm(args);
}

TEST(Spmm, NoWidth) {
  Problem p = make_problem({.degrees = {2, 3}, .x_rows = 3, .width = 1});
  p.width = 0;
  for (const float value : run(p)) EXPECT_EQ(value, kUntouched);
}

TEST(Spmm, EmptyRowsAmongOthers) {
  std::vector<std::uint64_t> degrees(30000, 0);
  for (std::size_t i = 7; i < degrees.size(); i += 1000) degrees[i] = 40;
  expect_matches_reference(make_problem({.degrees = degrees, .x_rows = 9, .width = 20}));
}

// Rows have about the sizes at which they are cut in pieces, and several times them.
TEST(Spmm, LongRows) {
  for (const std::uint64_t width : {1, 7, 32, 33, 100})
    for (const bool weighted : {false, true}) {
      Shape shape{.degrees = {3, 4095, 4096, 4097, 0, 8192, 8193, 16384, 16385, 50001, 2},
                  .x_rows = 1000,
                  .width = width,
                  .weighted = weighted,
                  .scaled = weighted};
      expect_matches_reference(make_problem(shape));
    }
}

// One chain of floats that adds ones stays at 2^24.
TEST(Spmm, LongRowKeepsPrecision) {
  Problem p;
  const std::size_t degree = (std::size_t{1} << 24) + 4096;
  p.columns.assign(degree, 0);
  p.begin = {0};
  p.end = {degree};
  p.x = {1.0f};
  p.width = p.x_stride = p.y_stride = 1;
  EXPECT_EQ(run(p)[0], static_cast<float>(degree));
}

TEST(Spmm, SameBitsForAnyThreadCount) {
  std::vector<std::uint64_t> degrees = random_degrees(3000, 60);
  degrees[0] = degrees[1500] = 20000;
  degrees[2999] = 100000;
  const int before = omp_get_max_threads();
  for (const std::uint64_t width : {1, 16, 47, 130}) {
    const Problem p = make_problem(
        {.degrees = degrees, .x_rows = 3000, .width = width, .weighted = true, .scaled = true});
    omp_set_num_threads(1);
    const std::vector<float> expected = run(p);
    for (const int threads : {2, 3, 5}) {
      omp_set_num_threads(threads);
      EXPECT_TRUE(same_bits(run(p), expected)) << threads << " threads, width " << width;
    }
    omp_set_num_threads(before);
  }
}

// The value is pinned to the chain of fused multiply-adds that spmm promises, whatever the width of
// the registers that computed it.
TEST(Spmm, EveryElementIsOneChain) {
  const Problem p = make_problem(
      {.degrees = random_degrees(30, 300), .x_rows = 40, .width = 45, .weighted = true});
  const std::vector<float> y = run(p);
  for (std::size_t i = 0; i < p.begin.size(); ++i)
    for (std::size_t j = 0; j < p.width; ++j) {
      float sum = 0;
      for (EdgeOffset e = p.begin[i]; e < p.end[i]; ++e)
        sum = std::fma(p.weights[e], p.x[p.columns[e] * p.x_stride + j], sum);
      ASSERT_EQ(y[i * p.y_stride + j], sum) << i << ", " << j;
    }
}

// Columns do not see each other: a slice of a wide product equals the narrow product.
TEST(Spmm, BitsDoNotDependOnTheWidth) {
  Problem p = make_problem(
      {.degrees = random_degrees(50, 200), .x_rows = 60, .width = 129, .weighted = true});
  const std::vector<float> wide = run(p);
  for (const std::uint64_t width : {1, 9, 31, 64, 128}) {
    p.width = width;
    const std::vector<float> narrow = run(p);
    for (std::size_t i = 0; i < p.begin.size(); ++i)
      EXPECT_EQ(std::memcmp(&narrow[i * p.y_stride], &wide[i * p.y_stride], width * sizeof(float)),
                0);
  }
}

// The local and the remote part of each row are views into one CSR, with gaps between them; rows
// may also stand in any order.
TEST(Spmm, RowsNeedNotTouch) {
  Problem p = make_problem({.degrees = random_degrees(5000, 40), .x_rows = 5000, .width = 24});
  Problem first_half = p, rest = p;
  for (std::size_t i = 0; i < p.begin.size(); ++i)
    first_half.end[i] = rest.begin[i] = p.begin[i] + (p.end[i] - p.begin[i]) / 2;
  expect_matches_reference(first_half);
  expect_matches_reference(rest);

  std::reverse(p.begin.begin(), p.begin.end());
  std::reverse(p.end.begin(), p.end.end());
  expect_matches_reference(p);
}

// Columns in the gaps are not even looked at: they may name rows that do not exist.
TEST(Spmm, ReadsNothingBetweenRows) {
  Problem p =
      make_problem({.degrees = std::vector<std::uint64_t>(200, 20), .x_rows = 9, .width = 12});
  std::vector<std::uint32_t> halo_owner(4, 0), halo_row{3, 2, 1, 0};
  const float* peer = p.x.data();
  p.source = {.base = p.x.data(),
              .stride = p.x_stride,
              .own = 5,
              .peers = &peer,
              .halo_owner = halo_owner.data(),
              .halo_row = halo_row.data()};
  for (std::size_t i = 0; i < p.begin.size(); ++i) {
    p.end[i] -= 10;
    for (EdgeOffset e = p.end[i]; e < p.end[i] + 10; ++e) p.columns[e] = 4000000000u;
  }
  expect_matches_reference(p);
}

// Own rows and the rows of three peers, each in memory of its own.
TEST(Spmm, Peers) {
  constexpr Slot kOwn = 100, kHalo = 60;
  for (const std::uint64_t width : {1, 8, 30, 32, 129})
    for (const bool weighted : {false, true}) {
      Shape shape{.degrees = random_degrees(kOwn, 90),
                  .x_rows = kOwn + kHalo,
                  .width = width,
                  .x_padding = 3,
                  .weighted = weighted,
                  .scaled = weighted};
      shape.degrees[5] = 9000;
      Problem p = make_problem(shape);
      Numbers numbers(7);
      std::vector<std::vector<float>> memory;
      for (int rank = 0; rank < 3; ++rank) memory.push_back(numbers.many(200 * p.x_stride));
      const std::vector<const float*> peers{memory[0].data(), memory[1].data(), memory[2].data()};
      std::vector<std::uint32_t> owner(kHalo), row(kHalo);
      for (Slot h = 0; h < kHalo; ++h) {
        owner[h] = static_cast<std::uint32_t>(numbers.below(3));
        row[h] = static_cast<std::uint32_t>(numbers.below(200));
      }
      p.source = {p.x.data(), p.x_stride, kOwn, peers.data(), owner.data(), row.data()};
      expect_matches_reference(p);

      // The same rows gathered after the own ones give the same bits without translation.
      Problem gathered = p;
      gathered.source = {};
      for (Slot h = 0; h < kHalo; ++h)
        std::copy_n(&memory[owner[h]][row[h] * p.x_stride], p.x_stride,
                    &gathered.x[(kOwn + h) * p.x_stride]);
      EXPECT_TRUE(same_bits(run(p), run(gathered)));
    }
}

TEST(Spmm, InfinityAndNanStayInTheirColumn) {
  Problem p =
      make_problem({.degrees = std::vector<std::uint64_t>(4, 10), .x_rows = 4, .width = 11});
  p.columns.assign(p.columns.size(), 1);
  p.x[1 * 11 + 2] = std::numeric_limits<float>::infinity();
  p.x[1 * 11 + 9] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = run(p);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 11; ++j) {
      EXPECT_EQ(std::isinf(y[i * 11 + j]), j == 2);
      EXPECT_EQ(std::isnan(y[i * 11 + j]), j == 9);
    }
}

TEST(Spmm, RefusesUnequalBeginAndEnd) {
  Problem p = make_problem({.degrees = {1, 2}, .x_rows = 2, .width = 3});
  p.end.pop_back();
  std::vector<float> y;
  EXPECT_THROW(spmm(p.args(y)), Error);
}

}  // namespace
}  // namespace plait
