#include "plait/embedding/row_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"

namespace plait {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kMost = ~Slot{0};

// Three ranks; width 32 gives ranks 8 or 16 columns of a table that is divided by columns.
EmbeddingLayout mixed() {
  return EmbeddingLayout({{10, EmbeddingSplit::table, 0},
                          {7, EmbeddingSplit::columns},
                          {5, EmbeddingSplit::replicated},
                          {0, EmbeddingSplit::table, 0},
                          {20, EmbeddingSplit::table, 1},
                          {3, EmbeddingSplit::columns},
                          {4, EmbeddingSplit::replicated},
                          {6, EmbeddingSplit::table, 0}},
                         32, 3);
}

std::vector<std::uint64_t> facts_of(const TableGroup& group) {
  return {group.first, group.end, group.columns, group.replicated ? 1u : 0u};
}

TEST(RowNumbers, PutTablesOfEqualColumnsSideBySide) {
  const EmbeddingLayout layout = mixed();
  const std::vector<RowNumbers> all = number_rows(layout, 0, kMost);
  ASSERT_EQ(all.size(), 1u);
  const std::uint64_t some = layout.piece(1, 0).columns;
  ASSERT_LT(some, 32u);
  EXPECT_THAT(all[0].tables, ElementsAre(2, 6, 1, 5, 0, 3, 7));
  EXPECT_THAT(all[0].bases, ElementsAre(0, 5, 9, 16, 19, 29, 29, 35));
  ASSERT_EQ(all[0].groups.size(), 3u);
  EXPECT_THAT(facts_of(all[0].groups[0]), ElementsAre(0, 2, 32, 1));
  EXPECT_THAT(facts_of(all[0].groups[1]), ElementsAre(2, 4, some, 0));
  EXPECT_THAT(facts_of(all[0].groups[2]), ElementsAre(4, 7, 32, 0));
}

TEST(RowNumbers, NumberReplicatedTablesAlikeOnAllRanks) {
  const EmbeddingLayout layout = mixed();
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<RowNumbers> all = number_rows(layout, rank, kMost);
    ASSERT_TRUE(all[0].groups[0].replicated);
    EXPECT_THAT(std::vector(all[0].tables.begin(), all[0].tables.begin() + 2), ElementsAre(2, 6));
    EXPECT_THAT(std::vector(all[0].bases.begin(), all[0].bases.begin() + 3), ElementsAre(0, 5, 9));
  }
}

TEST(RowNumbers, ArePartedWhereTheyWouldBeTooMany) {
  const EmbeddingLayout layout = mixed();  // rank 0's groups have 9, 10 and 16 rows
  const auto sizes = [&](std::uint64_t most) {
    std::vector<std::vector<Slot>> ends;
    for (const RowNumbers& numbers : number_rows(layout, 0, most)) {
      auto& of = ends.emplace_back();
      for (const TableGroup& group : numbers.groups) {
        EXPECT_EQ(group.first, of.empty() ? 0 : numbers.groups[of.size() - 1].end);
        of.push_back(numbers.bases[group.end]);
      }
      EXPECT_EQ(numbers.groups.back().end, numbers.tables.size());
      EXPECT_EQ(numbers.bases.size(), numbers.tables.size() + 1);
    }
    return ends;
  };
  EXPECT_THAT(sizes(36), ElementsAre(ElementsAre(9, 19, 35)));
  EXPECT_THAT(sizes(35), ElementsAre(ElementsAre(9, 19), ElementsAre(16)));
  EXPECT_THAT(sizes(19), ElementsAre(ElementsAre(9), ElementsAre(10), ElementsAre(16)));
  EXPECT_THROW(number_rows(layout, 0, 16), UsageError);
}

TEST(RowNumbers, OfGivenTablesKeepTheirOrder) {
  const RowNumbers numbers = number_rows(mixed(), 2, {4, 1, 2}, kMost);  // rank 2 has none of 4
  EXPECT_THAT(numbers.tables, ElementsAre(4, 1, 2));
  EXPECT_THAT(numbers.bases, ElementsAre(0, 0, 7, 12));
}

TEST(RowNumbers, OfOneRankAreOneGroup) {
  const EmbeddingLayout layout({{3, EmbeddingSplit::replicated}, {4, EmbeddingSplit::columns}}, 8,
                               1);
  const std::vector<RowNumbers> all = number_rows(layout, 0, kMost);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].groups.size(), 1u);
  EXPECT_THAT(facts_of(all[0].groups[0]), ElementsAre(0, 2, 8, 0));
}

TEST(RowNumbers, OfNoTablesAreNone) {
  EXPECT_TRUE(
      number_rows(EmbeddingLayout({{3, EmbeddingSplit::table, 0}}, 8, 2), 1, kMost).empty());
}

}  // namespace
}  // namespace plait
