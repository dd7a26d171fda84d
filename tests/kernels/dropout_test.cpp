#include "plait/kernels/dropout.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "plait/base/error.h"

namespace plait {
namespace {

TEST(Dropout, KeepsItsShareAndTheMean) {
  const Dropout dropout(7, 0.3f);
  double kept = 0, sum = 0;
  constexpr int kRows = 2000, kWidth = 37;
  for (std::uint64_t v = 0; v < kRows; ++v) {
    std::vector<float> row(kWidth, 1.0f);
    dropout.apply(v, 5, 1, row);
    for (const float value : row) {
      kept += value != 0;
      sum += value;
    }
  }
  constexpr double kCount = kRows * kWidth;
  // The bound is four standard deviations of a binomial.
  EXPECT_NEAR(kept / kCount, 0.7, 4 * std::sqrt(0.21 / kCount));
  EXPECT_NEAR(sum / kCount, 1.0, 4 * std::sqrt(0.21 / kCount) / 0.7);
}

// Stored columns are drawn eight at a time, with a rest of any length.
TEST(Dropout, StoredColumnsAreThoseOfTheWholeRow) {
  const Dropout dropout(1, 0.5f);
  constexpr std::uint32_t kWidth = 200;
  const std::vector<std::uint32_t> all{0,  1,  3,  4,  9,  10,  11,  12,  13,  77,
                                       78, 90, 91, 95, 96, 100, 101, 150, 198, 199};
  for (const std::uint64_t vertex : {0ull, 3ull, 1ull << 40})
    for (std::size_t count = 0; count <= all.size(); ++count) {
      const std::span columns = std::span(all).first(count);
      std::vector<float> row(kWidth, 1.0f), stored(count, 1.0f);
      dropout.apply(vertex, 9, 2, row);
      dropout.apply(vertex, 9, 2, columns, stored);
      for (std::size_t k = 0; k < count; ++k) EXPECT_EQ(stored[k], row[columns[k]]);
    }
}

// Rows are dropped eight blocks at a time, with a rest of any length.
TEST(Dropout, ElementsHaveTheNumbersOfTheirColumns) {
  const Dropout dropout(11, 0.4f);
  for (std::size_t width = 0; width < 140; ++width) {
    const std::uint64_t vertex = width * 0x123456789u;
    const auto epoch = static_cast<std::uint32_t>(width * 131071);
    std::vector<float> row(width, 3.0f), expected;
    dropout.apply(vertex, epoch, 254, row);
    for (std::uint32_t c = 0; c < width; ++c)
      expected.push_back(3.0f * dropout.factor(dropout.numbers(vertex, epoch, 254, c)[c % 4]));
    EXPECT_EQ(row, expected) << "width " << width;
  }
}

TEST(Dropout, EveryPartOfTheKeyMatters) {
  const auto mask = [](std::uint64_t seed, std::uint64_t vertex, std::uint32_t epoch,
                       std::uint32_t layer) {
    std::vector<float> row(64, 1.0f);
    Dropout(seed, 0.5f).apply(vertex, epoch, layer, row);
    return row;
  };
  const std::set<std::vector<float>> masks{mask(0, 0, 0, 0), mask(1, 0, 0, 0), mask(0, 1, 0, 0),
                                           mask(0, 0, 1, 0), mask(0, 0, 0, 1)};
  EXPECT_EQ(masks.size(), 5u);
}

using Words = std::array<std::uint32_t, 4>;

Words words_of(const Philox::Block& block) { return {block[0], block[1], block[2], block[3]}; }

// Numbers differ between edges in both directions, heads, epochs and layers; none is a feature's.
TEST(Dropout, EdgesHaveNumbersOfTheirOwn) {
  const Dropout dropout(7, 0.5f);
  std::set<Words> seen;
  std::size_t drawn = 0;
  const auto draw = [&](const Philox::Block& block) {
    seen.insert(words_of(block));
    ++drawn;
  };
  for (const std::uint64_t far : {std::uint64_t{0}, std::uint64_t{1} << 33})
    for (std::uint64_t target = 0; target < 150; ++target)
      for (std::uint64_t source = 0; source < 150; ++source)
        draw(dropout.edge_numbers(target + far, source, 0, 0, 0));
  for (std::uint32_t k = 1; k < 40; ++k) {
    draw(dropout.edge_numbers(3, 5, k, 0, 0));
    draw(dropout.edge_numbers(3, 5, 0, k, 0));
    draw(dropout.edge_numbers(3, 5, 0, 0, 4 * k));
  }
  for (std::uint64_t vertex = 0; vertex < 1000; ++vertex) draw(dropout.numbers(vertex, 0, 0, 0));
  EXPECT_EQ(seen.size(), drawn);
  // Heads 4 .. 7 are of one block.
  EXPECT_EQ(dropout.edge_numbers(3, 5, 0, 0, 4), dropout.edge_numbers(3, 5, 0, 0, 7));
}

TEST(Dropout, OfEdgesKeepsItsShare) {
  const Dropout dropout(1, 0.6f);
  constexpr std::uint64_t kSide = 150;
  double kept = 0;
  for (std::uint64_t target = 0; target < kSide; ++target)
    for (std::uint64_t source = 0; source < kSide; ++source)
      for (const std::uint32_t number : dropout.edge_numbers(target, source, 9, 1, 0))
        kept += dropout.keeps(number);
  constexpr double kCount = 4 * kSide * kSide;
  EXPECT_NEAR(kept / kCount, 0.4, 4 * std::sqrt(0.24 / kCount));
  EXPECT_EQ(dropout.factor(0), 0.0f);
  EXPECT_EQ(dropout.factor(0xffffffffu), dropout.scale());
  EXPECT_FLOAT_EQ(dropout.scale(), 2.5f);
}

TEST(Dropout, RefusesSharesOutsideTheRange) {
  EXPECT_THROW(Dropout(0, 1.0f), UsageError);
  EXPECT_THROW(Dropout(0, -0.1f), UsageError);
  EXPECT_THROW(Dropout(0, NAN), UsageError);
}

}  // namespace
}  // namespace plait
