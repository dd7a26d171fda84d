// Tables over ranks with a GPU each: rows of all ranks, with the bits of the CPU's reference; hot
// rows, and rows that cross once. Ranks share GPUs where there are fewer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/table/cuda/count_ids.h"
#include "plait/table/cuda/distinct_rows.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/hot_rows.h"
#include "plait/table/sharded/place.h"
#include "plait/table/sharded/table.h"
#include "plait/world/gather.h"
#include "tests/support/stored_rows.h"
#include "tests/support/table_rows.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

constexpr TablePlace kPlaces[] = {TablePlace::gpu, TablePlace::host, TablePlace::replicated};

std::string words_of(const TableSettings& s) {
  return fmt::format("place {}, division {}, type {}, {} rows of {}", to_string(s.place),
                     static_cast<int>(s.division), to_string(s.type), s.rows, s.width);
}

// Compares a gather by `gather` with the rows that were stored.
template <class Gather>
void check_rows(const Table& table, const TableSettings& s, const std::vector<std::uint64_t>& ids,
                const std::string& what, Gather gather) {
  const DeviceArray<std::uint64_t> ids_there{std::span<const std::uint64_t>(ids)};
  const auto expected = table_rows(s, ids);
  DeviceArray<std::byte> out(expected.size());
  gather(table.rows().gather(ids_there.data(), ids.size(), out.data(), s.width));
  expect(out.to_host() == expected, words_of(s) + ", " + what + ": rows differ");
}

void check_table(World& world, const TableSettings& s) {
  std::atomic<std::uint64_t> given{0};
  const auto table = Table::create(world, s, table_source(s, given), Device::gpu);
  const TableLayout layout(s, world.size());
  const int part = layout.parts() == 1 ? 0 : world.rank();
  expect(s.width == 0 || given == layout.size(part),
         words_of(s) + ": a rank reads its own rows alone");
  const auto ids = random_ids(s.rows, 3000, static_cast<unsigned>(world.rank()));
  const auto plain = [](const GatherRows& args) { gpu_gather_rows(args, nullptr); };
  check_rows(*table, s, ids, "plain", plain);
  GpuDistinctGather distinct(ids.size());
  const auto once = [&](const GatherRows& args) { distinct.gather(args, nullptr); };
  check_rows(*table, s, ids, "distinct", once);

  GpuIdCounts counts(s.rows);
  const DeviceArray<std::uint64_t> ids_there{std::span<const std::uint64_t>(ids)};
  counts.add(ids_there.data(), ids.size(), nullptr);
  const auto weights = counts.to_host();
  std::vector<std::uint64_t> by_hand(s.rows);
  for (const std::uint64_t id : ids) ++by_hand[id];
  expect(weights == by_hand, "counts of ids");
  const auto hot = hot_rows(weights, s.rows / 10);
  table->keep_hot(hot);
  check_rows(*table, s, ids, "hot", plain);
  const std::set<std::uint64_t> copied(hot.begin(), hot.end());
  GatherCounts expected;
  for (const std::uint64_t id : ids) {
    const RowPlace place = place_of(layout.view(), layout.view().starts, id);
    const bool mine = s.place != TablePlace::host &&
                      static_cast<int>(place.rank) == (layout.parts() == 1 ? 0 : world.rank());
    expected.hot += copied.contains(id);
    expected.crossed += !copied.contains(id) && !mine;
  }
  const GatherCounts found = table->counts();
  const bool counted = s.width > 0 && !hot.empty();
  expect(!counted || (found.hot == expected.hot && found.crossed == expected.crossed),
         words_of(s) + fmt::format(": {} hot and {} crossed, not {} and {}", found.hot,
                                   found.crossed, expected.hot, expected.crossed));
  check_rows(*table, s, ids, "hot and distinct", once);
  table->keep_hot({});
  check_rows(*table, s, ids, "no longer hot", plain);
  world.barrier();
}

const RankProgram kTables("gpu tables", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const std::uint64_t rows = 2001;
  const Partition hash = partition_by_hash(rows, world.size());
  for (const TablePlace place : kPlaces)
    for (const auto division : {TableDivision::ranges, TableDivision::hash, TableDivision::owners})
      check_table(
          world,
          {.rows = rows, .width = 20, .place = place, .division = division, .owners = &hash});
  for (const TablePlace place : kPlaces)
    for (const DType type : row_types())
      check_table(world, {.rows = 777, .width = 33, .type = type, .place = place});
});

TEST(GpuTable, IsReadByAllRanks) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu tables", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

const RankProgram kPlace("gpu place", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  StoreQuestion q{.table = {.rows = 1000, .width = 10}, .ranks = world.size(), .gpus = true};
  expect(choose_place(world, q, true) == TablePlace::replicated, "a small table");
  // A quarter of what is free, of which the least rank's is decisive: too much for copies.
  q.table.rows = std::ranges::min(gather_values(world, gpu_free_memory())) / 4 / 40;
  expect(choose_place(world, q, false) == TablePlace::gpu, "a table of a quarter of the memory");
  expect(choose_place(world, q, false, std::uint64_t{1} << 50) == TablePlace::host,
         "a table beside others that take the GPU");
  q.table.rows = std::uint64_t{1} << 45;
  choose_place(world, q, false);
});

TEST(GpuTable, RanksChooseAPlaceTogether) {
  const Outcome outcome = run_job({.program = "gpu place", .ranks = 2, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 4) << outcome.all_errors();
}

TEST(GpuTable, OfOddSizes) {
  const auto world = World::alone();
  for (const TablePlace place : kPlaces) {
    check_table(*world, {.rows = 0, .width = 4, .place = place});
    check_table(*world, {.rows = 1, .width = 1, .place = place});
    check_table(*world, {.rows = 5, .width = 0, .place = place});
    // Three blocks of 32 MiB.
    check_table(*world, {.rows = 20000, .width = 1000, .type = DType::fp8, .place = place});
  }
}

TEST(GpuTable, RefusesWhatDoesNotFit) {
  const auto world = World::alone();
  const auto nothing = [](std::span<const std::uint64_t>, std::byte*) {};
  for (const TablePlace place : kPlaces)
    EXPECT_THROW(
        Table::create(*world, {.rows = std::uint64_t{1} << 40, .width = 100, .place = place},
                      nothing, Device::gpu),
        DoesNotFitError);
  EXPECT_THROW(Table::create(*world, {.rows = 1, .width = 1, .place = TablePlace::mapped}, nothing,
                             Device::gpu),
               UsageError);
}

}  // namespace
}  // namespace plait::test
