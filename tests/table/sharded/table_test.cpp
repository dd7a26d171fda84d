// Tables over ranks on the CPU: every rank gathers rows that all have filled.
#include "plait/table/sharded/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/table/sharded/place.h"
#include "tests/support/stored_rows.h"
#include "tests/support/table_rows.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using testing::HasSubstr;

void check_table(World& world, const TableSettings& s) {
  const std::string what =
      fmt::format("place {}, division {}, type {}, {} rows of {}", to_string(s.place),
                  static_cast<int>(s.division), to_string(s.type), s.rows, s.width);
  std::atomic<std::uint64_t> given{0};
  const auto table = Table::create(world, s, table_source(s, given), Device::cpu);
  const TableLayout layout(s, world.size());
  expect(given == layout.size(layout.parts() == 1 ? 0 : world.rank()),
         what + ": a rank reads its own rows alone");
  const auto ids = random_ids(s.rows, 500, static_cast<unsigned>(world.rank()));
  const auto expected = table_rows(s, ids);
  std::vector<std::byte> out(expected.size());
  gather_rows(table->rows().gather(ids.data(), ids.size(), out.data(), s.width));
  expect(out == expected, what + ": rows differ");
}

const RankProgram kTables("tables", [](World& world) {
  const std::uint64_t rows = 1001;
  const Partition hash = partition_by_hash(rows, world.size());
  for (const TablePlace place : {TablePlace::host, TablePlace::replicated})
    for (const auto division : {TableDivision::ranges, TableDivision::hash, TableDivision::owners})
      for (const DType type : row_types())
        check_table(world, {.rows = rows,
                            .width = 21,
                            .type = type,
                            .place = place,
                            .division = division,
                            .owners = &hash});
  check_table(world, {.rows = 0, .width = 5});
  check_table(world, {.rows = 1, .width = 5, .division = TableDivision::hash});
  check_table(world, {.rows = 40, .width = 0});
  check_table(world, {.rows = 40000, .width = 130});  // several blocks
});

TEST(Table, IsReadByAllRanks) {
  for (const int ranks : {2, 3}) {
    const Outcome outcome = run_job({"tables", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << ": " << outcome.all_errors();
  }
}

TEST(Table, ServesARankAlone) {
  const auto world = World::alone();
  for (const DType type : row_types()) check_table(*world, {.rows = 99, .width = 7, .type = type});
}

const RankProgram kFails("a source fails", [](World& world) {
  const TableSettings s{.rows = 10, .width = 1};
  const auto source = [&](std::span<const std::uint64_t>, std::byte*) {
    if (world.rank() == 1) throw Error("no such rows");
  };
  Table::create(world, s, source, Device::cpu);
});

TEST(Table, EndsOnAllRanksIfASourceFails) {
  const Outcome outcome = run_job({"a source fails", 2, kPatient});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("no such rows"));
}

const RankProgram kTooMuch("a table that is too large", [](World& world) {
  Table::create(
      world, {.rows = std::uint64_t{1} << 50, .width = 100},
      [](std::span<const std::uint64_t>, std::byte*) {}, Device::cpu);
});

TEST(Table, RefusesWhatDoesNotFit) {
  const Outcome outcome = run_job({"a table that is too large", 2, kPatient});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("free"));
}

TEST(Table, MapsFeaturesWithoutACopy) {
  Features features{.rows = 3, .width = 2, .f32 = std::vector<float>{1, 2, 3, 4, 5, 6}};
  auto table = Table::map(features);
  EXPECT_EQ(table->rows().rows.base[0], reinterpret_cast<const std::byte*>(features.f32.data()));
  features.f32 = {};  // the table keeps them
  const std::vector<std::uint64_t> ids{2, 0, 2};
  std::vector<float> out(6);
  table->gather(ids.data(), 3, out.data(), 2);
  EXPECT_EQ(out, (std::vector<float>{5, 6, 1, 2, 5, 6}));
  Features bf16{.rows = 2, .width = 1};
  bf16.bf16 = std::vector<BFloat16>{to_bf16(3), to_bf16(4)};
  const std::vector<std::uint64_t> both{1, 0};
  Table::map(bf16)->gather(both.data(), 2, out.data(), 1);
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(out[1], 3);
  Features sparse{.rows = 1, .width = 1};
  sparse.sparse.offsets = std::vector<EdgeOffset>{0, 0};
  EXPECT_THROW(Table::map(sparse), UsageError);
}

const RankProgram kPlaces("ranks choose a place", [](World& world) {
  StoreQuestion q{.table = {.rows = 100, .width = 10}, .ranks = world.size()};
  expect(choose_place(world, q, true) == TablePlace::mapped, "what is mapped stays so");
  expect(choose_place(world, q, false) == TablePlace::host, "it fits");
  // One rank reserves more than there is, which all must learn.
  choose_place(world, q, false, world.rank() == 0 ? 0 : available_memory() / 10 * 11);
});

TEST(Table, RanksChooseAPlaceTogether) {
  const Outcome outcome = run_job({"ranks choose a place", 2, kPatient});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("the features need 3.9 KiB of this host's memory"));
}

TEST(Table, KeepsNoHotRowsOnTheCpu) {
  const Features features{.rows = 1, .width = 1, .f32 = std::vector<float>{1}};
  const auto table = Table::map(features);
  table->keep_hot({});
  EXPECT_THROW(table->keep_hot(std::vector<std::uint64_t>{0}), UsageError);
  EXPECT_EQ(table->counts().hot, 0u);
}

TEST(Table, RefusesPlacesOfOthers) {
  const auto world = World::alone();
  for (const TablePlace place : {TablePlace::gpu, TablePlace::mapped})
    EXPECT_THROW(Table::create(
                     *world, {.rows = 1, .width = 1, .place = place},
                     [](std::span<const std::uint64_t>, std::byte*) {}, Device::cpu),
                 UsageError);
}

}  // namespace
}  // namespace plait::test
