// Tiles of equally many edges and rows: a slow walk over them, part by part, gives every row's sum.
#include "plait/kernels/even_cut.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace plait {
namespace {

std::vector<EvenTile> tiles_of(const std::vector<EdgeOffset>& offsets) {
  const std::uint64_t rows = offsets.size() - 1, edges = offsets.back() - offsets[0];
  std::vector<EvenTile> tiles;
  for (std::uint64_t t = 0; t <= even_tiles(edges, rows); ++t)
    tiles.push_back(even_tile(offsets.data(), rows, edges, t));
  return tiles;
}

// Returns the sums of the numbers of each row's edges, found tile by tile as kernels do.
std::vector<std::uint64_t> sums_by_tiles(const std::vector<EdgeOffset>& offsets) {
  const std::vector<EvenTile> tiles = tiles_of(offsets);
  std::vector<std::uint64_t> y(offsets.size() - 1), parts(2 * tiles.size(), 0);
  for (std::uint32_t t = 0; t + 1 < tiles.size(); ++t) {
    const EvenTile &here = tiles[t], &next = tiles[t + 1];
    EXPECT_LE(next.row() - here.row() + next.edge - here.edge, kEvenTile);
    EdgeOffset edge = here.edge;
    for (std::uint32_t row = here.row(); row < next.row(); ++row) {
      std::uint64_t sum = 0;
      for (; edge < offsets[row + 1]; ++edge) sum += edge;
      (row == here.row() && here.cut() ? parts[2 * t] : y[row]) = sum;
    }
    for (; edge < next.edge; ++edge) parts[2 * t + 1] += edge;
  }
  const EvenCutRows cut = cut_rows_of(tiles);
  for (std::size_t k = 0; k < cut.rows.size(); ++k) {
    const CutRow& row = cut.rows[k];
    EXPECT_EQ(row.count > CutRow::kFew, k >= cut.rows.size() - cut.hubs);
    y[row.row] = std::accumulate(parts.begin() + row.first, parts.begin() + row.first + row.count,
                                 std::uint64_t{0});
  }
  return y;
}

void check(const std::vector<std::uint64_t>& degrees, EdgeOffset first = 0) {
  std::vector<EdgeOffset> offsets{first};
  for (const std::uint64_t degree : degrees) offsets.push_back(offsets.back() + degree);
  const std::vector<EvenTile> tiles = tiles_of(offsets);
  EXPECT_EQ(tiles.front().edge, first);
  EXPECT_EQ(tiles.front().row_and_cut, 0u);
  EXPECT_EQ(tiles.back().edge, offsets.back());
  EXPECT_EQ(tiles.back().row_and_cut, degrees.size());
  std::vector<std::uint64_t> sums;
  for (std::size_t row = 0; row < degrees.size(); ++row) {
    const EdgeOffset begin = offsets[row], end = offsets[row + 1];
    sums.push_back(end == begin ? 0 : (end - begin) * (begin + end - 1) / 2);
  }
  EXPECT_EQ(sums_by_tiles(offsets), sums);
}

TEST(EvenCut, SumsRowsOfEveryLength) {
  check({0});
  check({1});
  check({kEvenTile - 1});  // fills a tile
  check({kEvenTile, 0});   // its end is in the next one
  check({kEvenTile - 1, kEvenTile - 1, kEvenTile, kEvenTile + 1, 1});
  check({3 * kEvenTile, 0, 0, 40 * kEvenTile, 5}, 1234);
  check(std::vector<std::uint64_t>(5000, 0));
  check(std::vector<std::uint64_t>(5000, 1), 77);
  std::mt19937 random(3);
  for (int graph = 0; graph < 100; ++graph) {
    std::vector<std::uint64_t> degrees(random() % 3000 + 1);
    for (std::uint64_t& degree : degrees)
      degree = random() % 100 == 0 ? random() % 20'000 : random() % (graph % 5 + 1);
    check(degrees, graph % 3 * 1000);
  }
}

TEST(EvenCut, CountsRowsBefore) {
  std::mt19937 random(4);
  for (int graph = 0; graph < 100; ++graph) {
    std::vector<int> ends;
    for (int edges = 0; ends.size() < random() % 50 + 1;)
      ends.push_back(edges += static_cast<int>(random() % 4));
    const int rows = static_cast<int>(ends.size()), edges = ends.back();
    int row = 0, edge = 0;
    for (int items = 0; items <= rows + edges; ++items) {
      ASSERT_EQ(rows_before(items, rows, edges, [&](int r) { return ends[r]; }), row);
      if (row < rows && edge == ends[row])
        ++row;
      else
        ++edge;
    }
  }
}

// A row of 2^33 edges, of which no array is made.
TEST(EvenCut, CountsBeyond32Bits) {
  constexpr std::uint64_t kEdges = std::uint64_t{1} << 33;
  const std::vector<EdgeOffset> offsets{0, 1, kEdges, kEdges + 5};
  const std::uint64_t tiles = even_tiles(kEdges + 5, 3);
  const EvenTile middle = even_tile(offsets.data(), 3, kEdges + 5, tiles / 2);
  EXPECT_EQ(middle.row(), 1u);
  EXPECT_TRUE(middle.cut());
  EXPECT_EQ(middle.edge, tiles / 2 * kEvenTile - 1);
  EXPECT_EQ(even_tile(offsets.data(), 3, kEdges + 5, tiles).edge, kEdges + 5);
}

TEST(EvenCut, SuitsShortRows) {
  EXPECT_TRUE(suits_even_cut(0, 5));
  EXPECT_TRUE(suits_even_cut(160, 5));
  EXPECT_FALSE(suits_even_cut(161, 5));
  EXPECT_FALSE(suits_even_cut(0, 0));
}

TEST(EvenCut, GainsWhereManyRowsDiffer) {
  constexpr EdgeOffset kEdges = 1 << 20;
  const auto rows_of = [](EdgeOffset each, std::uint64_t times_square) {
    return RowLengths{kEdges, kEdges * each * times_square, kEdges / each};
  };
  EXPECT_TRUE(gains_by_even_cut(rows_of(1, 1)));    // a path that is directed
  EXPECT_TRUE(gains_by_even_cut(rows_of(2, 1)));    // a ring
  EXPECT_FALSE(gains_by_even_cut(rows_of(4, 1)));   // a grid
  EXPECT_FALSE(gains_by_even_cut(rows_of(16, 1)));  // cliques
  EXPECT_TRUE(gains_by_even_cut(rows_of(16, 2)));
  EXPECT_FALSE(gains_by_even_cut({1 << 16, 1 << 24, 1 << 14}));  // a tiny graph
  EXPECT_FALSE(gains_by_even_cut({0, 0, 5}));
}

}  // namespace
}  // namespace plait
