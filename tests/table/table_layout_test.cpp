// Every row of a table has one place, whatever the division; ids and places are inverse.
#include "plait/table/table_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "plait/base/error.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

// Settings of each division; `partition` is for owners.
TableSettings settings_of(TableDivision division, std::uint64_t rows, const Partition& partition) {
  return {.rows = rows, .width = 3, .division = division, .owners = &partition};
}

void check(const TableLayout& layout, std::uint64_t rows) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> places;
  std::uint64_t all = 0, largest = 0;
  for (int part = 0; part < layout.parts(); ++part) {
    std::vector<std::uint64_t> ids(layout.size(part)), tail(ids.size() / 2);
    layout.ids(part, 0, ids);
    EXPECT_TRUE(std::ranges::is_sorted(ids));
    layout.ids(part, ids.size() - tail.size(), tail);
    EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), ids.rbegin()));
    for (std::uint64_t row = 0; row < ids.size(); ++row) {
      ASSERT_LT(ids[row], rows);
      const RowPlace place = place_of(layout.view(), layout.view().starts, ids[row]);
      ASSERT_EQ(place.rank, static_cast<std::uint32_t>(part)) << ids[row];
      ASSERT_EQ(place.row, row) << ids[row];
      places.emplace(place.rank, place.row);
    }
    all += ids.size(), largest = std::max<std::uint64_t>(largest, ids.size());
  }
  EXPECT_EQ(all, rows);
  EXPECT_EQ(places.size(), rows);
  EXPECT_EQ(layout.largest(), largest);
}

TEST(TableLayout, GivesEveryRowOnePlace) {
  for (const int ranks : {1, 2, 3, 8, kMostStoreRanks})
    for (const std::uint64_t rows : {0, 1, 2, 7, 64, 71, 72, 73, 1000}) {
      const Partition hash = partition_by_hash(rows, ranks);
      const Partition ranges = partition_by_vertices(rows, ranks);
      SCOPED_TRACE(testing::Message() << rows << " rows, " << ranks << " ranks");
      for (const TableDivision division : {TableDivision::ranges, TableDivision::hash})
        check(TableLayout(settings_of(division, rows, hash), ranks), rows);
      for (const Partition* partition : {&hash, &ranges})
        check(TableLayout(settings_of(TableDivision::owners, rows, *partition), ranks), rows);
    }
}

TEST(TableLayout, HashAndRangesAreBalanced) {
  const Partition none = partition_by_vertices(0, 1);
  for (const TableDivision division : {TableDivision::ranges, TableDivision::hash}) {
    const TableLayout layout(settings_of(division, 1003, none), 8);
    for (int part = 0; part < 8; ++part) EXPECT_NEAR(layout.size(part), 125, 1);
  }
}

TEST(TableLayout, IsWholeWhereEachRankHasAll) {
  for (const TablePlace place : {TablePlace::replicated, TablePlace::mapped}) {
    const TableLayout layout(
        {.rows = 10, .width = 1, .place = place, .division = TableDivision::hash}, 4);
    EXPECT_EQ(layout.parts(), 1);
    EXPECT_EQ(layout.size(0), 10u);
    check(layout, 10);
  }
}

TEST(TableLayout, RefusesContradictions) {
  const Partition partition = partition_by_hash(9, 2);
  const auto refusal = [&](TableSettings s, int ranks) {
    return error_of([&] { TableLayout(s, ranks); });
  };
  EXPECT_NE(refusal({.rows = 1, .width = 1}, 0), "");
  EXPECT_NE(refusal({.rows = 1, .width = 1}, kMostStoreRanks + 1), "");
  EXPECT_NE(refusal({.rows = 1, .width = 1, .division = TableDivision::owners}, 1), "");
  EXPECT_NE(
      refusal({.rows = 8, .width = 1, .division = TableDivision::owners, .owners = &partition}, 2),
      "");
  EXPECT_NE(
      refusal({.rows = 9, .width = 1, .division = TableDivision::owners, .owners = &partition}, 3),
      "");
  EXPECT_NE(refusal({.rows = std::uint64_t{1} << 60, .width = 1}, 3), "");
  EXPECT_NO_THROW(TableLayout(
      {.rows = 9, .width = 1, .division = TableDivision::owners, .owners = &partition}, 2));
}

TEST(RowsOf, TakesFeaturesOfAllForms) {
  Features dense{.rows = 3, .width = 2, .f32 = std::vector<float>{1, 2, 3, 4, 5, 6}};
  Features bf16{.rows = 3, .width = 2};
  bf16.bf16 =
      std::vector<BFloat16>{to_bf16(1), to_bf16(2), to_bf16(3), to_bf16(4), to_bf16(5), to_bf16(6)};
  Features sparse{.rows = 3, .width = 2};
  sparse.sparse = {.offsets = std::vector<EdgeOffset>{0, 2, 2, 3},
                   .neighbours = std::vector<std::uint32_t>{0, 1, 1},
                   .weights = std::vector<float>{7, 8, 9}};
  const std::vector<std::uint64_t> ids{2, 0, 1, 2};
  const auto read = [&](const Features& features) {
    std::vector<float> out(8, -1);
    rows_of(features)(ids, reinterpret_cast<std::byte*>(out.data()));
    return out;
  };
  EXPECT_EQ(read(dense), (std::vector<float>{5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read(bf16), (std::vector<float>{5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read(sparse), (std::vector<float>{0, 9, 7, 8, 0, 0, 0, 9}));
}

}  // namespace
}  // namespace plait
