#include "plait/embedding/bags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/embedding/bag_edges.h"
#include "plait/embedding/row_update.h"

namespace plait {
namespace {

using Numbers = std::vector<std::int64_t>;

std::string fault_of(const Numbers& ids, const Numbers& offsets, bool with_end = false) {
  try {
    check_bags({.ids = ids, .offsets = offsets, .with_end = with_end}, {{10, 20}, {-1, -1}});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "right";
}

TEST(Bags, AreChecked) {
  EXPECT_EQ(fault_of({9, 19}, {0, 1}), "right");
  EXPECT_EQ(fault_of({9, 19}, {0, 1, 2}, true), "right");
  EXPECT_EQ(fault_of({}, {}), "right");
  EXPECT_EQ(fault_of({}, {0}, true), "right");
  EXPECT_EQ(fault_of({}, {0, 0, 0, 0}), "right");
  EXPECT_EQ(fault_of({1, 10}, {0, 2}), "ids[1] is 10, outside 0..9 of table 0");
  EXPECT_EQ(fault_of({1, -1}, {0, 1}), "ids[1] is -1, outside 0..19 of table 1");
  EXPECT_EQ(fault_of({1, 2, 3}, {0, 2, 1, 3}), "offsets[2] is 1, below offsets[1], which is 2");
  EXPECT_EQ(fault_of({1, 2}, {0, 3}), "offsets[1] is 3, beyond the 2 ids");
  EXPECT_EQ(fault_of({1, 2}, {1, 2}), "offsets[0] is 1, but must be 0");
  EXPECT_EQ(fault_of({1, 2}, {0, 1, 1}, true), "offsets end with 1, but there are 2 ids");
  EXPECT_EQ(fault_of({1, 2}, {0, 1, 1}),
            "offsets are of 3 bags, which cannot be divided among 2 tables");
  EXPECT_EQ(fault_of({1, 2}, {}), "there are 2 ids, but offsets are of no bag that they belong to");
  EXPECT_EQ(fault_of({}, {}, true),
            "offsets are empty, but must have one number more than there are bags");
  EXPECT_THROW(check_bags({.ids = {}, .offsets = {}, .fault = "wrong"}, {{1}, {-1}}), UsageError);
}

// Memory for bags, and bags of two tables of random sizes, some longer than a block of work.
struct Made {
  Numbers ids, offsets;
  std::vector<float> weights;
  std::vector<EdgeOffset> starts;
  std::vector<Slot> slots;
  std::vector<float> kept;
  BagTables tables{{50, 7}, {-1, 3}};
  Bags bags;

  explicit Made(unsigned seed, std::uint64_t per_table = 1500) {
    std::mt19937 random(seed);
    for (std::uint64_t bag = 0; bag < 2 * per_table; ++bag) {
      offsets.push_back(static_cast<std::int64_t>(ids.size()));
      for (unsigned k = random() % 6; k > 0; --k) {
        ids.push_back(random() % static_cast<unsigned>(tables.rows[bag / per_table]));
        weights.push_back(static_cast<float>(random() % 9));
      }
    }
    starts.resize(offsets.size() + 1), slots.resize(ids.size()), kept.resize(ids.size());
    const GivenBags given{.ids = ids, .offsets = offsets, .weights = weights.data()};
    bags = write_bags(given, tables, {starts.data(), slots.data(), kept.data()});
  }
};

TEST(Bags, AreWrittenWithoutPadding) {
  const Made made(1);
  EdgeOffset at = 0;
  for (std::size_t bag = 0; bag < made.offsets.size(); ++bag) {
    EXPECT_EQ(made.starts[bag], at);
    const auto end = bag + 1 < made.offsets.size() ? made.offsets[bag + 1]
                                                   : static_cast<std::int64_t>(made.ids.size());
    for (auto i = static_cast<std::size_t>(made.offsets[bag]); i < static_cast<std::size_t>(end);
         ++i) {
      if (bag >= made.bags.per_table && made.ids[i] == 3) continue;
      ASSERT_EQ(made.slots[at], static_cast<Slot>(made.ids[i]));
      ASSERT_EQ(made.kept[at++], made.weights[i]);
    }
  }
  EXPECT_EQ(made.starts.back(), at);
  EXPECT_LT(at, made.ids.size());
}

TEST(BagEdges, AreSortedByRowInOrder) {
  std::mt19937 random(2);
  for (const std::uint64_t rows : {1u, 2u, 2049u, 5000000u}) {
    GradientEdges edges{.weighted = true};
    std::vector<std::pair<Slot, Slot>> wanted;
    for (Slot i = 0; i < 200000; ++i) {
      const Slot row = static_cast<Slot>(random() % rows);
      edges.rows.push_back(row);
      edges.from.push_back(i);
      edges.weights.push_back(static_cast<float>(i % 100));
      wanted.emplace_back(row, i);
    }
    std::ranges::stable_sort(wanted, {}, &std::pair<Slot, Slot>::first);
    const EdgesByRow sorted = by_row(std::move(edges), rows);
    std::size_t i = 0;
    for (std::size_t k = 0; k < sorted.rows.size(); ++k)
      for (EdgeOffset e = sorted.offsets[k]; e < sorted.offsets[k + 1]; ++e, ++i) {
        ASSERT_EQ(wanted[i], (std::pair{sorted.rows[k], sorted.from[e]}));
        ASSERT_EQ(sorted.weights[e], static_cast<float>(sorted.from[e] % 100));
      }
    EXPECT_EQ(i, wanted.size());
  }
  EXPECT_TRUE(by_row({}, 0).rows.empty());
}

TEST(BagEdges, OfAllRanksAreThoseOfTheBags) {
  const Made made(3);
  StoredRows places{.rows = 50, .ranks = 3, .dealt = ~std::uint64_t{0} / 3 + 1};
  GradientEdges whole{.weighted = true};
  whole.add(made.bags, 0, 7, true);
  std::multiset<std::tuple<Slot, Slot, float>> wanted, found;
  for (std::size_t e = 0; e < whole.rows.size(); ++e)
    wanted.emplace(whole.rows[e], whole.from[e], whole.weights[e]);
  const auto by_owner = bags_by_owner(made.bags, 0, places);
  for (int rank = 0; rank < 3; ++rank) {
    const OwnedBags owned = owned_bags(made.bags, 0, places, rank, true);
    EXPECT_EQ(owned.bags, by_owner[static_cast<std::size_t>(rank)]);
    GradientEdges part{.weighted = true};
    part.add(owned, 7);
    for (std::size_t e = 0; e < part.rows.size(); ++e)
      for (Slot id = 0; id < 50; ++id)
        if (const RowPlace place = place_of(places, places.starts, id);
            static_cast<int>(place.rank) == rank && place.row == part.rows[e])
          found.emplace(id, part.from[e], part.weights[e]);
  }
  EXPECT_EQ(found, wanted);
}

TEST(RowUpdate, DoesNotDependOnThreads) {
  constexpr std::size_t kRows = 1000, kWidth = 7;
  std::mt19937 random(4);
  Numbers rows(kRows);
  std::vector<float> gradients(kRows * kWidth);
  for (std::size_t i = 0; i < kRows; ++i) rows[i] = static_cast<std::int64_t>(2 * i + random() % 2);
  for (float& g : gradients) g = static_cast<float>(random() % 100) / 50 - 1;
  for (const RowRule rule : {RowRule::sgd, RowRule::adagrad, RowRule::adam}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 3}) {
      const ThreadCount count(threads);
      std::vector<float> w(2 * kRows * kWidth, 1.0f), s = w, m = w;
      update_rows({.rule = rule,
                   .rows = rows.data(),
                   .count = kRows,
                   .width = kWidth,
                   .gradients = gradients.data(),
                   .weights = w.data(),
                   .squares = s.data(),
                   .moments = m.data(),
                   .rate = 0.1f,
                   .epsilon = 1e-8f,
                   .a = 0.1f,
                   .b = 0.01f});
      w.insert(w.end(), s.begin(), s.end());
      results.push_back(w);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_NE(results[0][static_cast<std::size_t>(rows[1]) * kWidth], 1.0f);
  }
}

}  // namespace
}  // namespace plait
