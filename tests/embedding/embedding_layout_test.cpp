#include "plait/embedding/embedding_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plait/base/error.h"
#include "plait/embedding/embedding_choice.h"

namespace plait {
namespace {

constexpr EmbeddingSplit kSplits[] = {EmbeddingSplit::replicated, EmbeddingSplit::table,
                                      EmbeddingSplit::columns, EmbeddingSplit::rows};

TEST(EmbeddingLayout, HasEveryNumberOnce) {
  for (const EmbeddingSplit split : kSplits)
    for (const int ranks : {1, 2, 3, 8})
      for (const std::uint64_t width : {1, 5, 16, 48, 128})
        for (const std::uint64_t rows : {0, 1, 29}) {
          const EmbeddingLayout layout({{rows, split, ranks - 1}}, width, ranks);
          std::multiset<std::pair<std::uint64_t, std::uint64_t>> found;
          for (int rank = 0; rank < ranks; ++rank) {
            const EmbeddingPiece piece = layout.piece(0, rank);
            std::vector<std::uint64_t> ids(piece.rows);
            layout.ids(0, rank, 0, ids);
            for (const std::uint64_t id : ids)
              for (std::uint64_t c = 0; c < piece.columns; ++c)
                found.emplace(id, piece.first_column + c);
          }
          const auto copies =
              static_cast<std::size_t>(split == EmbeddingSplit::replicated ? ranks : 1);
          EXPECT_EQ(found.size(), rows * width * copies);
          for (std::uint64_t id = 0; id < rows; ++id)
            for (std::uint64_t c = 0; c < width; ++c) EXPECT_EQ(found.count({id, c}), copies);
        }
}

TEST(EmbeddingLayout, DividesColumnsByCacheLines) {
  const EmbeddingLayout layout({{10, EmbeddingSplit::columns}}, 128, 3);
  EXPECT_EQ(layout.piece(0, 0).columns, 32);
  EXPECT_EQ(layout.piece(0, 1).first_column, 32);
  EXPECT_EQ(layout.piece(0, 2).columns, 48);
}

TEST(EmbeddingLayout, RefusesWhatCannotBe) {
  EXPECT_THROW(EmbeddingLayout({{10}}, 0, 1), UsageError);
  EXPECT_THROW(EmbeddingLayout({{10}}, 4, 73), UsageError);
  EXPECT_THROW(EmbeddingLayout({{10, EmbeddingSplit::table, 2}}, 4, 2), UsageError);
  EXPECT_THROW(EmbeddingLayout({{std::uint64_t{1} << 32}}, 4, 2), UsageError);
  EXPECT_THROW(parse_embedding_split("rank"), UsageError);
}

std::vector<EmbeddingSplit> splits(const std::vector<EmbeddingTable>& tables) {
  std::vector<EmbeddingSplit> found;
  for (const EmbeddingTable& table : tables) found.push_back(table.split);
  return found;
}

TEST(EmbeddingChoice, FollowsSizeAndTraffic) {
  using enum EmbeddingSplit;
  const EmbeddingQuestion q{
      .tables = {{10, 1}, {2000000, 1}, {50000, 90}, {60000, 3}, {60000, 2}, {9000, 2}},
      .width = 128,
      .ranks = 2,
      .samples = 1000};
  const auto chosen = choose_splits(q);
  EXPECT_THAT(splits(chosen), testing::ElementsAre(replicated, rows, columns, table, table, table));
  EXPECT_EQ(chosen[3].owner, 0);
  EXPECT_EQ(chosen[4].owner, 1);
  EXPECT_EQ(chosen[5].owner, 1);
  EmbeddingQuestion narrow = q;
  narrow.width = 16;
  EXPECT_EQ(choose_splits(narrow)[2].split, rows);
  EmbeddingQuestion alone = q;
  alone.ranks = 1;
  EXPECT_THAT(splits(choose_splits(alone)), testing::Each(table));
}

TEST(EmbeddingChoice, LeavesNoRankWithMuchMoreReads) {
  using enum EmbeddingSplit;
  // Five equal tables leave one of four ranks with two of them, unless one is divided.
  EmbeddingQuestion q{.tables = std::vector<EmbeddingUse>(5, {100000, 1}),
                      .width = 64,
                      .ranks = 4,
                      .samples = 1000};
  const auto chosen = choose_splits(q);
  EXPECT_THAT(splits(chosen), testing::ElementsAre(columns, table, table, table, table));
  EXPECT_EQ(chosen[1].owner, 0);
  EXPECT_EQ(chosen[4].owner, 3);
  std::vector<std::uint64_t> read;
  for (const EmbeddingCost& cost : embedding_costs(q, chosen)) read.push_back(cost.read);
  EXPECT_THAT(read, testing::Each(read[0]));
  q.tables.push_back({10, 100});  // which all ranks read alike
  EXPECT_THAT(splits(choose_splits(q)),
              testing::ElementsAre(table, table, table, table, table, replicated));
  q.tables.pop_back();
  q.width = 32;  // too few columns for four ranks
  EXPECT_EQ(choose_splits(q)[0].split, rows);
  q.tables.resize(4);
  EXPECT_THAT(splits(choose_splits(q)), testing::Each(table));
}

TEST(EmbeddingChoice, DealsOutTablesWithoutIdsBySize) {
  // The last two are dealt out first, by reads.
  const EmbeddingQuestion q{
      .tables = {{4000, 0}, {9000, 0}, {5000, 0}, {6000, 0}, {8000, 1}, {8000, 1}},
      .width = 64,
      .ranks = 2,
      .samples = 1000};
  const auto chosen = choose_splits(q);
  EXPECT_THAT(splits(chosen), testing::Each(EmbeddingSplit::table));
  std::vector<int> owners;
  for (const EmbeddingTable& table : chosen) owners.push_back(table.owner);
  EXPECT_THAT(owners, testing::ElementsAre(0, 0, 1, 1, 0, 1));
}

TEST(EmbeddingChoice, CountsBytes) {
  using enum EmbeddingSplit;
  const EmbeddingQuestion q{
      .tables = {{8, 2}, {100, 3}, {100, 1}, {40, 4}}, .width = 32, .ranks = 2, .samples = 10};
  const auto costs =
      embedding_costs(q, {{8, replicated}, {100, table, 1}, {100, rows}, {40, columns}});
  ASSERT_EQ(costs.size(), 2);
  const std::uint64_t row = 128;
  EXPECT_EQ(costs[0].memory, row * (8 + 50) + 40 * 64);
  EXPECT_EQ(costs[1].memory, row * (8 + 100 + 50) + 40 * 64);
  EXPECT_EQ(costs[0].read, row * (20 + 10) + 80 * 64);
  EXPECT_EQ(costs[1].read, row * (20 + 60 + 10) + 80 * 64);
  EXPECT_EQ(costs[0].sent, row * 5 + 10 * 64);  // half of ids of one row are of either rank
  EXPECT_EQ(costs[1].sent, row * (10 + 5) + 10 * 64);
  // Sums are floats, whatever rows are.
  EmbeddingQuestion narrow = q;
  narrow.type = DType::bf16;
  const auto halved =
      embedding_costs(narrow, {{8, replicated}, {100, table, 1}, {100, rows}, {40, columns}});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(2 * halved[rank].memory, costs[rank].memory);
    EXPECT_EQ(2 * halved[rank].read, costs[rank].read);
    EXPECT_EQ(halved[rank].sent, costs[rank].sent);
  }
}

}  // namespace
}  // namespace plait
