// The data that benchmarks of models make, and how their results are compared.
#include "plait/measure/model_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "plait/base/error.h"
#include "plait/measure/bench.h"
#include "plait/measure/made_data.h"
#include "plait/nn/layers/input.h"

namespace plait {
namespace {

constexpr std::int32_t kClasses = 5;

Dataset ring(std::uint64_t vertices) {
  std::vector<EdgeOffset> offsets(vertices + 1);
  std::iota(offsets.begin(), offsets.end(), EdgeOffset{0});
  std::vector<std::uint32_t> neighbours(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v)
    neighbours[v] = static_cast<std::uint32_t>((v + 1) % vertices);
  return {.name = "ring", .graph = Csr32{std::move(offsets), std::move(neighbours), {}}};
}

TEST(MadeData, ClassesAreUniformAndDependOnTheSeed) {
  std::vector<int> counts(kClasses, 0);
  int same = 0;
  for (std::uint64_t v = 0; v < 10000; ++v) {
    const std::int32_t label = made_label(v, kClasses, 1);
    ++counts[static_cast<std::size_t>(label)];
    same += label == made_label(v, kClasses, 2) ? 1 : 0;
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 200);
  EXPECT_NEAR(same, 2000, 200);
}

TEST(MadeData, RowsAreKeyedByTheNumbersBeforeRenumbering) {
  const auto world = World::alone();
  const Dataset plain = ring(40);
  Dataset turned = plain;
  std::vector<std::uint64_t> numbers(40);
  for (std::uint64_t v = 0; v < 40; ++v) numbers[v] = 39 - v;
  turned.numbers = numbers;
  const MadeData made{.width = 3, .classes = kClasses, .seed = 4};
  const Dataset before = with_made_data(*world, plain, made);
  const Dataset after = with_made_data(*world, turned, made);
  const TableSource rows_before = made_rows(before, 3), rows_after = made_rows(after, 3);
  for (std::uint64_t v = 0; v < 40; ++v) {
    EXPECT_EQ(after.labels[v], before.labels[39 - v]);
    EXPECT_EQ(before.labels[v], made_label(v, kClasses, 4));
    const std::array ids{39 - v, v};
    float of_after[6], of_before[3];
    rows_after(ids, reinterpret_cast<std::byte*>(of_after));
    rows_before(std::span(ids).subspan(1), reinterpret_cast<std::byte*>(of_before));
    for (std::uint64_t c = 0; c < 3; ++c) {
      EXPECT_EQ(of_before[c], bench_feature(v, c));
      EXPECT_EQ(of_after[c], of_before[c]);
      EXPECT_EQ(of_after[3 + c], bench_feature(39 - v, c));
    }
  }
  EXPECT_FALSE(made_rows(before, 0));
}

// The rows come from their rule, as an array of them would give them; so no rank holds an array of
// all vertices, whatever the partition is.
TEST(MadeData, FeaturesAreReadWithoutAnArrayOfThem) {
  const auto world = World::alone();
  const Dataset data = with_made_data(*world, ring(40), {.width = 5, .classes = 2});
  EXPECT_EQ(data.features.width, 5u);
  EXPECT_TRUE(data.features.f32.empty());
  Features whole{.rows = 40, .width = 5, .f32 = Buffer<float>(200)};
  std::vector<std::uint64_t> all(40);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  Buffer<float> values(200);
  made_rows(data, 5)(all, reinterpret_cast<std::byte*>(values.data()));
  whole.f32 = std::move(values);
  const Partition partition = partition_by_hash(40, 3);
  for (const Normalize normalize : {Normalize::automatic, Normalize::rows})
    for (int rank = 0; rank < 3; ++rank) {
      const InputFeatures made({data.features, made_rows(data, 5)}, partition, rank, normalize);
      const InputFeatures given(whole, partition, rank, normalize);
      EXPECT_TRUE(made.dense({}).equal(given.dense({})));
    }
  EXPECT_THROW(InputFeatures(data.features, partition, 0, Normalize::none), Error);
}

TEST(MadeData, KeepsWhatIsNotMadeAndTrainsOnAll) {
  const auto world = World::alone();
  Dataset own = ring(6);
  own.labels = std::vector<std::int32_t>{0, 1, -1, 2, 1, 0};
  own.classes = 3;
  own.graph_ids = std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1};
  own.graphs = 2;
  const Dataset kept = with_made_data(*world, own, {.width = 2});
  EXPECT_TRUE(std::ranges::equal(kept.labels, own.labels));
  EXPECT_EQ(kept.examples(), 2u);
  EXPECT_EQ(kept.splits.size(), 2u);
  EXPECT_EQ(kept.features.width, 2u);
  const Dataset made = with_made_data(*world, own, {.classes = kClasses});
  EXPECT_EQ(made.task(), TaskKind::single_label);
  EXPECT_EQ(made.classes, kClasses);
  EXPECT_TRUE(made.features.empty());
  EXPECT_EQ(made.splits.size(), 6u);
  for (const Split split : made.splits) EXPECT_EQ(split, Split::train);
}

TEST(ScoreDifference, IsRelativeToARowButNotToOneThatCancels) {
  const torch::Tensor expected = torch::tensor({{100.0f, 1.0f}, {2.0f, -4.0f}, {1e-9f, 0.0f}});
  EXPECT_EQ(score_difference(expected.clone(), expected), 0);
  const auto with = [&](std::int64_t row, float added) {
    torch::Tensor scores = expected.clone();
    scores[row][1] += added;
    return score_difference(scores, expected);
  };
  EXPECT_NEAR(with(0, 1), 0.01, 1e-6);      // of 100
  EXPECT_NEAR(with(1, 0.4f), 0.1, 1e-6);    // of 4, the median too
  EXPECT_NEAR(with(2, 0.04f), 0.01, 1e-6);  // of the median
}

// Blocks of rows are compared one after the other, and the median is of all rows.
TEST(ScoreDifference, FindsAnyRowOfMany) {
  constexpr std::int64_t kRows = 900000, kColumns = 10;
  torch::Tensor expected = torch::ones({kRows, kColumns});
  expected.narrow(0, 0, kRows / 3).mul_(100);
  for (const std::int64_t row : {std::int64_t{0}, kRows / 2, kRows - 1}) {
    torch::Tensor scores = expected.clone();
    scores[row][3] += 0.5f;
    EXPECT_NEAR(score_difference(scores, expected), row == 0 ? 0.005 : 0.5, 1e-6);
    scores[row][3] = std::nanf("");
    EXPECT_EQ(score_difference(scores, expected), 1e30);
  }
}

TEST(ScoreDifference, NumbersThatAreNotFiniteDiffer) {
  const torch::Tensor expected = torch::ones({3, 2});
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    torch::Tensor scores = expected.clone();
    scores[1][0] = wrong;
    EXPECT_EQ(score_difference(scores, expected), 1e30);
    EXPECT_EQ(score_difference(scores, scores), 1e30);
  }
  EXPECT_EQ(score_difference(torch::ones({0, 2}), torch::ones({0, 2})), 0);
}

}  // namespace
}  // namespace plait
