// Rows of all ranks on rank 0.
#include "plait/aggregate/rows_in_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

constexpr std::uint64_t kVertices = 103, kWidth = 3;

// Row v is v, v + 0.25 and v + 0.5, by the number of the vertex.
std::vector<float> own_rows_of(const Partition& partition, int rank) {
  std::vector<float> rows;
  for (std::uint64_t r = 0; r < partition.size(rank); ++r)
    for (std::uint64_t k = 0; k < kWidth; ++k)
      rows.push_back(static_cast<float>(partition.number(rank, r)) + static_cast<float>(k) / 4);
  return rows;
}

void check_rows(World& world, Partition partition) {
  for (const bool renumbered : {false, true}) {
    if (renumbered) {
      std::vector<std::uint64_t> numbers(kVertices);
      for (std::uint64_t v = 0; v < kVertices; ++v) numbers[v] = (v * 10 + 7) % kVertices;
      partition.set_numbers(std::move(numbers));
    }
    const Buffer<float> all =
        rows_in_order<float>(world, partition, own_rows_of(partition, world.rank()), kWidth);
    expect(all.size() == (world.rank() == 0 ? kVertices * kWidth : 0), "rows of all on rank 0");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float wanted = static_cast<float>(i / kWidth) + static_cast<float>(i % kWidth) / 4;
      expect(all[i] == wanted, fmt::format("value {} is {}, not {}", i, all[i], wanted));
    }
  }
}

void check_all(World& world) {
  check_rows(world, partition_by_vertices(kVertices, world.size()));
  check_rows(world, partition_by_hash(kVertices, world.size()));
  const std::vector<float> mine(static_cast<std::size_t>(world.rank() * 2), 1.5f);
  const Buffer<float> all = values_by_rank<float>(world, mine);
  const auto sum = static_cast<std::size_t>(world.size() * (world.size() - 1));
  expect(all.size() == (world.rank() == 0 ? sum : 0), "values of all on rank 0");
}

// A rank that gives too few values leaves no other rank waiting.
void check_wrong_sizes(World& world) {
  const Partition partition = partition_by_hash(kVertices, world.size());
  std::vector<float> rows = own_rows_of(partition, world.rank());
  if (world.rank() == 1) rows.pop_back();
  const std::string error =
      failure_of([&] { rows_in_order<float>(world, partition, rows, kWidth); });
  expect(error.starts_with("rank 1: "), "refused: " + error);
  check_rows(world, partition_by_hash(kVertices, world.size()));
}

const RankProgram kWrongSizes("rows of a wrong size", check_wrong_sizes);

TEST(RowsInOrder, AreRefusedOnAllRanks) {
  const Outcome outcome = run_job({"rows of a wrong size", 3, kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

const RankProgram kRowsInOrder("rows in order", check_all);

TEST(RowsInOrder, AreOnRankZero) {
  check_all(*World::alone());
  const Outcome outcome = run_job({"rows in order", 4, kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(RowsInOrder, AreCountedOnceOrTwice) {
  Partition partition = partition_by_vertices(kVertices, 2);
  EXPECT_EQ(copies_in_order(partition), 1u);
  partition.set_numbers(std::vector<std::uint64_t>(kVertices));
  EXPECT_EQ(copies_in_order(partition), 2u);
  EXPECT_EQ(copies_in_order(partition_by_hash(kVertices, 2)), 2u);
}

}  // namespace
}  // namespace plait::test
