// Gathers on the CPU against plain loops, and these against numbers that are known.
#include "plait/table/gather_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "plait/base/parallel.h"
#include "plait/table/convert.h"
#include "tests/support/stored_rows.h"

namespace plait {
namespace {

using test::RankedRows;
using test::RowsCase;

constexpr std::byte kUntouched{0x5a};

using Gather = void (*)(const GatherRows&);

std::vector<std::byte> gathered(Gather gather, const RankedRows& rows,
                                const std::vector<std::uint64_t>& ids, std::uint64_t width,
                                DType type = DType::raw) {
  const std::uint64_t row = width * (type == DType::raw ? 1 : sizeof(float)), stride = row + 3;
  std::vector<std::byte> out(ids.size() * stride + 1, kUntouched);
  gather({.from = rows.view,
          .ids = ids.data(),
          .count = ids.size(),
          .width = width,
          .type = type,
          .out = out.data() + 1,
          .out_stride = stride});
  return out;
}

TEST(GatherRows, ReferenceTakesTheRowOfEachId) {
  const RankedRows rows({.ranks = 3, .rows = 50, .stride = 7});
  const std::vector<std::uint64_t> ids{0, 49, 20, 20, 3};
  const auto out = gathered(gather_rows_reference, rows, ids, 5);
  std::vector<std::byte> all;  // the rows in the order of ids
  for (const auto& memory : rows.memory) all.insert(all.end(), memory.begin(), memory.end());
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t k = 0; k < 8; ++k)
      EXPECT_EQ(out[1 + i * 8 + k], k < 5 ? all[ids[i] * 7 + k] : kUntouched) << i << ' ' << k;
  EXPECT_EQ(out[0], kUntouched);
}

TEST(GatherRows, ReferenceTakesTheRowOfItsOwner) {
  const RankedRows rows({.ranks = 3, .rows = 50, .stride = 7, .scattered = true});
  const std::vector<std::uint64_t> ids{0, 49, 20, 20, 3};
  const auto out = gathered(gather_rows_reference, rows, ids, 7);
  for (std::size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(out[1 + i * 10], rows.memory[rows.owner[ids[i]]][rows.row[ids[i]] * 7]) << i;
}

TEST(GatherRows, EqualsTheReference) {
  for (const int ranks : {1, 2, 3, 4, kMostStoreRanks})
    for (const std::uint64_t width : {1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 100, 1000, 1024, 4096})
      for (const unsigned way : {0u, 1u, 2u, 3u, 4u, 5u}) {
        const RowsCase c{.ranks = ranks,
                         .rows = 3000 / width + 90,
                         .stride = width + width % 3,
                         .before = width % 5,
                         .scattered = way % 3 == 1,
                         .dealt = way % 3 == 2,
                         .hot = way > 2};
        const RankedRows rows(c);
        const auto ids = test::random_ids(c.rows, width < 100 ? 2500 : 70, 3);
        EXPECT_EQ(gathered(gather_rows, rows, ids, width),
                  gathered(gather_rows_reference, rows, ids, width))
            << ranks << ' ' << width << ' ' << way;
      }
}

TEST(GatherRows, ConvertsAsTheReference) {
  for (const DType type : test::number_types())
    for (const std::uint64_t width : {1, 2, 7, 8, 100}) {
      const RankedRows rows({.ranks = 2, .rows = 60, .stride = width * 4 + 9, .before = 1});
      const auto ids = test::random_ids(60, 200, 4);
      EXPECT_EQ(gathered(gather_rows, rows, ids, width, type),
                gathered(gather_rows_reference, rows, ids, width, type))
          << width;
    }
}

// Every rank gets every id of a round once, in the order of rounds.
TEST(StoredRows, AreDealtOutEvenly) {
  for (const std::uint64_t ranks : {2, 3, 7, 8, 72}) {
    StoredRows rows;
    rows.ranks = static_cast<int>(ranks), rows.dealt = ~std::uint64_t{0} / ranks + 1;
    const std::uint64_t largest = ((std::uint64_t{1} << 57) / ranks - 50) * ranks;
    for (const std::uint64_t first : {std::uint64_t{0}, 1000 * ranks, largest})
      for (std::uint64_t id = first; id < first + 40 * ranks; id += ranks) {
        std::vector<bool> seen(ranks);
        for (std::uint64_t k = 0; k < ranks; ++k) {
          const RowPlace place = place_of(rows, rows.starts, id + k);
          ASSERT_EQ(place.row, id / ranks) << ranks << ' ' << id;
          seen.at(place.rank) = true;
        }
        ASSERT_EQ(std::ranges::count(seen, true), static_cast<std::ptrdiff_t>(ranks));
      }
  }
}

// A column of ids that are a multiple of the number of ranks apart falls upon all ranks.
TEST(StoredRows, AreDealtOutWithoutStrides) {
  StoredRows rows;
  rows.ranks = 8, rows.dealt = ~std::uint64_t{0} / 8 + 1;
  for (const std::uint64_t stride : {8, 16, 64, 1000, 4096}) {
    std::vector<int> of_rank(8);
    for (std::uint64_t k = 0; k < 8000; ++k)
      ++of_rank[place_of(rows, rows.starts, k * stride).rank];
    for (const int count : of_rank) EXPECT_NEAR(count, 1000, 250) << stride;
  }
}

TEST(GatherRows, CountsRowsThatCrossAndHotOnes) {
  RankedRows rows({.ranks = 3, .rows = 300, .stride = 4, .scattered = true, .hot = true});
  rows.view.own = 2;
  const auto ids = test::random_ids(300, 5000, 9);
  std::vector<std::byte> out(ids.size() * 4);
  GatherCounts counts{5, 7}, expected{5, 7}, reference{5, 7};
  for (const std::uint64_t id : ids) {
    const bool hot = (rows.hot[id / 64].bits >> id % 64 & 1) != 0;
    expected.hot += hot;
    expected.crossed += !hot && rows.owner[id] != 2;
  }
  GatherRows args{.from = rows.view,
                  .ids = ids.data(),
                  .count = ids.size(),
                  .width = 4,
                  .out = out.data(),
                  .out_stride = 4,
                  .counts = &counts};
  gather_rows(args);
  args.counts = &reference;
  gather_rows_reference(args);
  for (const GatherCounts& found : {counts, reference}) {
    EXPECT_EQ(found.hot, expected.hot);
    EXPECT_EQ(found.crossed, expected.crossed);
  }
  EXPECT_DOUBLE_EQ(GatherCounts({1, 3}).hit_rate(), 0.25);
  EXPECT_EQ(GatherCounts({0, 0}).hit_rate(), 0);
}

TEST(GatherRows, TakesTheCopyOfAHotRow) {
  RankedRows rows({.ranks = 2, .rows = 200, .stride = 1, .hot = true});
  std::vector<std::uint64_t> ids(200);
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  const auto out = gathered(gather_rows_reference, rows, ids, 1);
  std::size_t hot = 0;
  for (const std::uint64_t id : ids) {
    if ((rows.hot[id / 64].bits >> id % 64 & 1) == 0) continue;
    EXPECT_EQ(out[1 + id * 4], rows.memory[2][hot++]) << id;
  }
  EXPECT_EQ(hot, rows.memory[2].size());
}

TEST(GatherRows, OfNothing) {
  const RankedRows rows({.ranks = 2, .rows = 0, .stride = 4});
  EXPECT_EQ(gathered(gather_rows, rows, {}, 4), std::vector<std::byte>(1, kUntouched));
  const RankedRows some({.ranks = 1, .rows = 4, .stride = 4});
  EXPECT_EQ(gathered(gather_rows, some, {1, 2}, 0), std::vector<std::byte>(7, kUntouched));
}

// The exact value of a half precision number, from its fields.
float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? std::numeric_limits<double>::infinity()
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return static_cast<float>(bits >> 15 != 0 ? -size : size);
}

TEST(GatherRows, HalvesAreExact) {
  for (unsigned bits = 0; bits < 1u << 16; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float found = half_to_float(half);
    if ((bits & 0x7fffu) > 0x7c00u)
      EXPECT_TRUE(std::isnan(found)) << bits;
    else
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(half_value(half)))
          << bits;
  }
}

using Add = void (*)(const AddRows&);

// Returns the memory of all ranks after rows were added, of which none is a short fraction.
std::vector<std::vector<std::byte>> added(Add add, const RowsCase& c, std::uint64_t width,
                                          std::size_t count) {
  RankedRows rows(c);
  rows.fill_floats(c.before);
  const auto ids = test::random_ids(c.rows, count, 5);
  std::mt19937 random(2);
  std::vector<float> values(ids.size() * (width + 1));
  for (float& value : values) value = static_cast<float>(random()) / 3e8f;
  add({.to = rows.view,
       .ids = ids.data(),
       .count = ids.size(),
       .width = width,
       .rows = values.data(),
       .rows_stride = width + 1});
  return rows.memory;
}

TEST(AddRows, HasTheBitsOfTheReferenceForAllThreads) {
  for (const int threads : {1, 2, 5}) {
    const ThreadCount so_many(threads);
    for (const std::uint64_t width : {1, 3, 16, 100})
      for (const std::uint64_t rows : {1, 7, 400}) {  // few rows: runs longer than a block
        const RowsCase c{.ranks = 3, .rows = rows, .stride = width * 4 + 4, .before = 4};
        EXPECT_EQ(added(add_rows, c, width, 5000), added(add_rows_reference, c, width, 5000))
            << threads << ' ' << width << ' ' << rows;
      }
  }
}

TEST(AddRows, OfNothing) {
  const RowsCase c{.ranks = 2, .rows = 4, .stride = 8};
  EXPECT_EQ(added(add_rows, c, 2, 0), added(add_rows_reference, c, 2, 0));
  EXPECT_NE(added(add_rows, c, 2, 1), added(add_rows_reference, c, 2, 0));
}

}  // namespace
}  // namespace plait
