// The hottest rows are those that a sort by weight puts first.
#include "plait/table/hot_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plait/base/error.h"

namespace plait {
namespace {

std::vector<std::uint64_t> sorted_hot_rows(const std::vector<std::uint64_t>& weights,
                                           std::uint64_t most, std::uint64_t step) {
  std::vector<std::uint64_t> ids(weights.size());
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  std::erase_if(ids,
                [&](std::uint64_t id) { return weights[id] == 0 || (step > 0 && id % step == 0); });
  std::ranges::stable_sort(ids, std::greater{}, [&](std::uint64_t id) { return weights[id]; });
  ids.resize(std::min<std::size_t>(ids.size(), most));
  std::ranges::sort(ids);
  return ids;
}

TEST(HotRows, AreThoseThatASortPutsFirst) {
  std::mt19937_64 random(1);
  for (const std::uint64_t greatest : {1ull, 5ull, 100000ull, ~0ull})
    for (const std::size_t rows : {0u, 1u, 60u, 500u}) {
      std::vector<std::uint64_t> weights(rows);
      for (std::uint64_t& weight : weights) weight = random() % greatest;
      for (const std::uint64_t most : {0u, 1u, 7u, 59u, 60u, 250u, 600u})
        for (const std::uint64_t step : {0u, 1u, 3u}) {
          const auto skip = [&](std::uint64_t id) { return id % step == 0; };
          EXPECT_EQ(step == 0 ? hot_rows(weights, most) : hot_rows(weights, most, skip),
                    sorted_hot_rows(weights, most, step))
              << greatest << ' ' << rows << ' ' << most << ' ' << step;
        }
    }
}

TEST(HotRows, AreCountedByEdges) {
  const Csr64 graph{.offsets = std::vector<EdgeOffset>{0, 3, 3, 5},
                    .neighbours = std::vector<std::uint64_t>{2, 2, 0, 2, 1}};
  const auto times = times_read(graph);
  EXPECT_EQ(std::vector(times.begin(), times.end()), (std::vector<std::uint64_t>{1, 1, 3}));
  EXPECT_EQ(times_read(Csr32{}).size(), 0u);
}

TEST(HotRows, HaveAnIndex) {
  const std::vector<std::uint64_t> ids{0, 3, 63, 64, 200};
  const auto index = hot_index(ids, 257);
  ASSERT_EQ(index.size(), 5u);
  StoredRows view;
  view.ranks = 1, view.rows = 257, view.hot = index.data();
  view.starts[1] = 257;
  for (std::uint64_t id = 0; id < 257; ++id) {
    const auto at = std::ranges::find(ids, id);
    const RowPlace place = place_of(view, view.starts, id);
    EXPECT_EQ(place.rank, at == ids.end() ? 0u : 1u) << id;
    EXPECT_EQ(place.row, at == ids.end() ? id : static_cast<std::uint64_t>(at - ids.begin()));
  }
  EXPECT_THROW(hot_index(std::vector<std::uint64_t>{3, 3}, 9), UsageError);
  EXPECT_THROW(hot_index(std::vector<std::uint64_t>{9}, 9), UsageError);
  EXPECT_TRUE(hot_index({}, 0).empty());
}

TEST(HotRows, FillTheRoom) {
  for (const std::uint64_t bytes : {0u, 100u, 1000u, 100000u}) {
    const std::uint64_t copies = hot_rows_that_fit(bytes, 1000, 16);
    EXPECT_LE(hot_bytes(copies, 1000, 16), bytes);
    EXPECT_GT(hot_bytes(copies + 1, 1000, 16), bytes == 100000 ? 0 : bytes);
  }
  EXPECT_EQ(hot_rows_that_fit(100000, 1000, 16), 1000u);
}

}  // namespace
}  // namespace plait
