// The account of a stored dataset against figures that are counted by hand and those of the paper,
// and the place that it leads to.
#include "plait/table/store_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plait/table/hot_rows.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::uint64_t bytes_of(const StorePlan& plan, std::string_view name, std::size_t rank = 0) {
  for (const MemoryItem& item : plan.memory.items)
    if (item.name == name) return item.bytes.at(rank);
  return ~std::uint64_t{0};
}

// ogbn-papers100M as WholeGraph stores it: 111.1 M vertices of 128 floats, 3.2 G edges of 8 bytes.
StoreQuestion papers(DType type) {
  return {.table = {.rows = 111'100'000, .width = 128, .type = type, .place = TablePlace::gpu},
          .ranks = 8,
          .gpus = true,
          .structure = 24 * kGiB,
          .labels = 444'400'000};
}

TEST(StoreMemory, HasTheFiguresOfThePaper) {
  const StorePlan plan = plan_store(papers(DType::f32));
  const double gib = static_cast<double>(bytes_of(plan, "features")) / kGiB;
  EXPECT_NEAR(gib, 6.62, 0.01);  // table IV: 6.7 GB per GPU, 53 GB in all
  EXPECT_EQ(plan.memory.items.front().bytes.size(), 8u);
  EXPECT_EQ(bytes_of(plan, "structure", 7), 24 * kGiB);
  EXPECT_EQ(bytes_of(plan, "labels", 3), 444'400'000u);
  EXPECT_EQ(plan.total(), 8 * plan.memory.rank_total(0));
  // A row of int8 has 128 codes, a scale and 12 bytes of gap.
  EXPECT_EQ(bytes_of(plan_store(papers(DType::int8)), "features"), 111'100'000u / 8 * 144);
}

TEST(StoreMemory, CountsWhereRowsStand) {
  StoreQuestion q = papers(DType::bf16);
  q.table.rows = 1001, q.hot_rows = 100;
  EXPECT_EQ(bytes_of(plan_store(q), "features"), 126u * 256);  // of the largest rank
  EXPECT_EQ(bytes_of(plan_store(q), "copies of hot rows"), hot_bytes(100, 1001, 256));
  q.table.place = TablePlace::host;
  EXPECT_EQ(plan_store(q).host, 8u * 126 * 256);
  EXPECT_EQ(bytes_of(plan_store(q), "features"), 0u);
  q.table.place = TablePlace::replicated;
  EXPECT_EQ(bytes_of(plan_store(q), "features"), 1001u * 256);
  const Partition hash = partition_by_hash(1001, 8);
  q.table.place = TablePlace::gpu, q.table.division = TableDivision::owners, q.table.owners = &hash;
  EXPECT_EQ(bytes_of(plan_store(q), "features"), hash.largest() * 256);
  EXPECT_EQ(bytes_of(plan_store(q), "owner and row of every vertex"), 1001u * 8);
  q.gpus = false, q.table.place = TablePlace::mapped;
  EXPECT_EQ(plan_store(q).total(), 0u);
}

TEST(StoreMemory, ChoosesThePlace) {
  StoreQuestion q = papers(DType::f32);
  const auto place = [&](std::uint64_t gpu, std::uint64_t host, bool peers = true) {
    return choose_place(q,
                        {.gpus = std::vector<std::uint64_t>(8, gpu), .host = host, .peers = peers});
  };
  EXPECT_EQ(place(1000 * kGiB, 0), TablePlace::replicated);  // 53 GiB are small
  EXPECT_EQ(place(140 * kGiB, 0), TablePlace::gpu);
  EXPECT_EQ(place(32 * kGiB, 0), TablePlace::gpu);
  EXPECT_EQ(place(30 * kGiB, 100 * kGiB), TablePlace::host);
  EXPECT_EQ(place(140 * kGiB, 100 * kGiB, false), TablePlace::host);
  EXPECT_EQ(place(140 * kGiB, 10 * kGiB, false), TablePlace::replicated);
  const std::string refusal = error_of([&] { place(30 * kGiB, 50 * kGiB); });
  for (const char* figure :
       {"need 6.6 GiB on each of 8 GPUs as fp32", "53.0 GiB of the host", "structure 24.0 GiB",
        "30.0 GiB are free on a GPU", "50.0 GiB on the host"})
    EXPECT_THAT(refusal, HasSubstr(figure));
  EXPECT_THROW(place(10 * kGiB, 500 * kGiB), DoesNotFitError);  // not even the structure fits
  q.hot_rows = q.table.rows;
  EXPECT_THROW(place(70 * kGiB, 500 * kGiB), DoesNotFitError);
  q.hot_rows = 0, q.ranks = 1;
  EXPECT_EQ(choose_place(q, {.gpus = {80 * kGiB}}), TablePlace::replicated);
}

TEST(StoreMemory, OneFullGpuDecides) {
  const StoreQuestion q = papers(DType::f32);
  std::vector<std::uint64_t> gpus(8, 60 * kGiB);
  EXPECT_EQ(choose_place(q, {.gpus = gpus}), TablePlace::gpu);
  gpus[5] = 25 * kGiB;
  EXPECT_EQ(choose_place(q, {.gpus = gpus, .host = 60 * kGiB}), TablePlace::host);
}

TEST(StoreMemory, ChoosesThePlaceOnTheCpu) {
  StoreQuestion q = papers(DType::f32);
  q.gpus = false;
  EXPECT_EQ(choose_place(q, {.host = 1, .mappable = true}), TablePlace::mapped);
  EXPECT_EQ(choose_place(q, {.host = 54 * kGiB}), TablePlace::host);
  EXPECT_THAT(error_of([&] { choose_place(q, {.host = 50 * kGiB}); }),
              HasSubstr("the features need 53.0 GiB of this host's memory as fp32, but only 50.0 "
                        "GiB are free"));
  q.table.rows = std::uint64_t{1} << 56, q.table.width = std::uint64_t{1} << 39;  // no overflow
  EXPECT_THROW(choose_place(q, {.host = ~std::uint64_t{0} - 1}), DoesNotFitError);
}

TEST(StoreMemory, AsksForADataset) {
  Dataset dataset;
  dataset.graph = Csr32{.offsets = std::vector<EdgeOffset>{0, 2, 3},
                        .neighbours = std::vector<std::uint32_t>{0, 1, 1}};
  dataset.features.width = 7;
  dataset.labels = std::vector<std::int32_t>{1, 0};
  const StoreQuestion q = store_question(dataset, {.type = DType::f16}, 3, true);
  EXPECT_EQ(q.table.rows, 2u);
  EXPECT_EQ(q.table.width, 7u);
  EXPECT_EQ(q.structure, 3u * 8 + 3 * 4);
  EXPECT_EQ(q.labels, 8u);
  EXPECT_EQ(store_question(dataset, {.width = 9}, 3, true).table.width, 9u);
}

}  // namespace
}  // namespace plait
