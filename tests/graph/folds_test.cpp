// Folds: every example tests once, classes are spread evenly, and the seed decides.
#include "plait/graph/folds.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "plait/base/error.h"

namespace plait {
namespace {

// Makes vertices of a graph without edges; some have no label, a rare class or a common one.
Dataset labelled(std::uint64_t vertices) {
  std::mt19937 random(3);
  std::vector<std::int32_t> labels(vertices);
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(random() % 10 * random() % 5) - 1;
  Dataset data;
  data.graph = Csr32{std::vector<EdgeOffset>(vertices + 1, 0), {}, {}};
  data.labels = std::move(labels);
  data.classes = 4;
  return data;
}

TEST(Folds, EachExampleTestsOnceAndValidatesOnce) {
  const Dataset data = labelled(103);
  for (const int count : {3, 5, 10, 103}) {
    std::vector<int> tests(103), validates(103);
    for (int test = 0; test < count; ++test) {
      const Array<Split> splits = make_folds(data, {count, test}, 7);
      ASSERT_EQ(splits.size(), 103u);
      const Array<Split> next = make_folds(data, {count, (test + 1) % count}, 7);
      for (std::size_t i = 0; i < 103; ++i) {
        tests[i] += splits[i] == Split::test;
        validates[i] += splits[i] == Split::validation;
        EXPECT_NE(splits[i], Split::none);
        EXPECT_EQ(splits[i] == Split::validation, next[i] == Split::test);
      }
    }
    EXPECT_EQ(tests, std::vector<int>(103, 1)) << count;
    EXPECT_EQ(validates, std::vector<int>(103, 1)) << count;
  }
}

TEST(Folds, ClassesAreSpreadEvenly) {
  const Dataset data = labelled(1000);
  std::map<std::int32_t, std::vector<int>> tests;
  std::vector<int> sizes;
  for (int test = 0; test < 10; ++test) {
    const Array<Split> splits = make_folds(data, {10, test}, 1);
    for (std::size_t i = 0; i < 1000; ++i) {
      auto& of_class = tests[data.labels[i]];
      of_class.resize(10);
      of_class[static_cast<std::size_t>(test)] += splits[i] == Split::test;
    }
    sizes.push_back(static_cast<int>(std::ranges::count(splits, Split::test)));
  }
  EXPECT_EQ(tests.size(), 5u);
  for (const auto& [label, counts] : tests)
    EXPECT_LE(std::ranges::max(counts) - std::ranges::min(counts), 1) << label;
  EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1);
}

TEST(Folds, TheSeedDecides) {
  const Dataset data = labelled(200);
  const auto list = [&](std::uint64_t seed) {
    const Array<Split> splits = make_folds(data, {5, 2}, seed);
    return std::vector<Split>(splits.begin(), splits.end());
  };
  EXPECT_EQ(list(4), list(4));
  EXPECT_NE(list(4), list(5));
}

TEST(Folds, OfGraphsAndOfLabelSets) {
  Dataset data = labelled(12);
  data.labels = {};
  data.label_sets = std::vector<std::uint8_t>(48, 1);
  EXPECT_EQ(make_folds(data, {3, 0}, 0).size(), 12u);
  data.label_sets = {};
  data.graph_ids = std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
  data.graphs = 4;
  data.labels = std::vector<std::int32_t>{0, 1, 1, 0};
  EXPECT_EQ(make_folds(data, {3, 0}, 0).size(), 4u);
  EXPECT_THROW(make_folds(data, {5, 0}, 0), UsageError);
}

TEST(Folds, RefusesWhatDoesNotExist) {
  const Dataset data = labelled(20);
  for (const Folds folds : {Folds{2, 0}, Folds{-3, 0}, Folds{21, 0}, Folds{5, 5}, Folds{5, -1}})
    EXPECT_THROW(make_folds(data, folds, 0), UsageError) << folds.count << " " << folds.test;
}

}  // namespace
}  // namespace plait
