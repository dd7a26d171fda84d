#include "plait/plan/memory_plan.h"

#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/placement/graph_shards.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

template <class T>
std::uint64_t bytes_of(const Array<T>& array) {
  return array.size() * sizeof(T);
}

std::uint64_t bytes_of(const Shard& shard) {
  return bytes_of(shard.offsets) + bytes_of(shard.split) + bytes_of(shard.slots) +
         bytes_of(shard.weights) + bytes_of(shard.halo.owner) + bytes_of(shard.halo.row);
}

TEST(MemoryPlan, ShardsTakeWhatThePlanSays) {
  for (const bool weighted : {false, true})
    for (const bool replicate : {false, true}) {
      const AnyCsr graph = test::random_csr<std::uint32_t>(200, 3000, 4, weighted);
      const Partition partition = partition_by_hash(200, 3);
      const MemoryPlan plan =
          plan_memory(measure_partition(graph, partition), {.widths = {16}, .weighted = weighted},
                      replicate ? HaloStore::complete : HaloStore::distinct);
      std::uint64_t most_slots = 0;
      for (int rank = 0; rank < 3; ++rank) {
        const auto shards =
            make_graph_shards(graph, true, partition, rank,
                              {.halo = replicate ? HaloKind::complete : HaloKind::distinct});
        EXPECT_EQ(plan.items[0].bytes[static_cast<std::size_t>(rank)], bytes_of(shards.forward));
        most_slots = std::max(most_slots, shards.forward.slot_count());
      }
      EXPECT_EQ(plan.items[1].bytes[0], most_slots * 16 * sizeof(float));
    }
}

// Rows in slots are padded, on the CPU and on GPUs; x and y are not.
TEST(MemoryPlan, WidthsThatAreNoMultipleOfFourTakePadding) {
  const AnyCsr graph = test::random_csr<std::uint32_t>(200, 3000, 4);
  const auto quality = measure_partition(graph, partition_by_edges(graph, 2));
  const auto item = [](const MemoryPlan& plan, std::string_view prefix) {
    for (const MemoryItem& one : plan.items)
      if (one.name.starts_with(prefix)) return one.bytes;
    throw Error("no such item");
  };
  const auto host = [&](std::uint64_t width) {
    return plan_memory(quality, {.widths = {width}}, HaloStore::distinct);
  };
  EXPECT_EQ(item(host(47), "rows in"), item(host(48), "rows in"));
  for (const HaloStore halo :
       {HaloStore::dense, HaloStore::packed, HaloStore::none, HaloStore::paged}) {
    const auto gpus = [&](std::uint64_t width) {
      return plan_gpu_memory(quality, {.widths = {width}}, halo);
    };
    EXPECT_EQ(item(gpus(47), "rows in"), item(gpus(48), "rows in"));
    EXPECT_LT(item(gpus(47), "x and y"), item(gpus(48), "x and y"));
  }
}

TEST(MemoryPlan, RefusesWithTheFigures) {
  const AnyCsr graph = test::random_csr<std::uint32_t>(200, 3000, 4);
  const auto quality = measure_partition(graph, partition_by_edges(graph, 2));
  const MemoryPlan plan = plan_memory(quality, {.widths = {64}}, HaloStore::distinct);
  EXPECT_EQ(plan.total(), plan.rank_total(0) + plan.rank_total(1));
  EXPECT_NO_THROW(require_fit(plan, plan.total()));
  try {
    require_fit(plan, plan.total() - 1);
    FAIL();
  } catch (const DoesNotFitError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::does_not_fit);
  }
}

// Rank 0 reads four of rank 1's five rows, so all come; rank 1 reads one of rank 0's, which lists
// it.
TEST(MemoryPlan, GpusHoldWhatEachStrategyBringsIn) {
  const std::vector<test::Edge> edges{{5, 0, 1}, {6, 0, 1}, {7, 1, 1}, {8, 1, 1}, {0, 5, 1}};
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(10, edges, false));
  const PartitionQuality quality = measure_partition(graph, partition_by_vertices(10, 2));
  EXPECT_EQ(quality.parts[0].halo_rows, 4);
  EXPECT_EQ(quality.parts[0].dense_rows, 5);
  EXPECT_EQ(quality.parts[0].listed_rows, 0);
  EXPECT_EQ(quality.parts[0].packed_rows, 1);
  EXPECT_EQ(quality.parts[1].dense_rows, 1);
  EXPECT_EQ(quality.parts[1].listed_rows, 1);
  EXPECT_EQ(quality.parts[1].packed_rows, 0);
  EXPECT_EQ(quality.parts[0].whole_rows, 0);
  EXPECT_EQ(quality.parts[1].whole_rows, 5);

  DType wire = DType::f32;
  const auto bytes = [&](HaloStore halo, std::string_view name, std::uint64_t width = 8) {
    const MemoryQuestion question{.widths = {width}, .wire = wire};
    for (const MemoryItem& item : plan_gpu_memory(quality, question, halo).items)
      if (item.name.starts_with(name)) return item.bytes;
    return std::vector<std::uint64_t>{};
  };
  using Expected = std::vector<std::uint64_t>;
  EXPECT_EQ(bytes(HaloStore::dense, "shard"), (Expected{6 * 8 + 4 * 4 + 5 * 4, 6 * 8 + 4 + 5 * 4}));
  EXPECT_EQ(bytes(HaloStore::dense, "halo lists"), (Expected{4, 4}));
  EXPECT_EQ(bytes(HaloStore::dense, "rows in the"), (Expected{10 * 8 * 4, 10 * 8 * 4}));
  EXPECT_EQ(bytes(HaloStore::none, "rows in the"), (Expected{5 * 8 * 4, 5 * 8 * 4}));
  EXPECT_EQ(bytes(HaloStore::packed, "rows packed"), (Expected{8 * 4, 0}));
  EXPECT_EQ(bytes(HaloStore::dense, "x and y"), (Expected{2 * 5 * 8 * 4, 2 * 5 * 8 * 4}));
  // Memory that is taken only once the graph is placed, such as rows, x and y, may take more.
  EXPECT_EQ(bytes(HaloStore::dense, "more while placing"), (Expected{0, 0}));
  EXPECT_EQ(bytes(HaloStore::dense, "more while placing", 0),
            (Expected{10 * 5 + 4 * 4, 10 * 5 + 4}));
  // Rows that are converted are all packed for NCCL, and the halo is summed in a pass of its own.
  const Expected groups = bytes(HaloStore::packed, "neighbour groups");
  EXPECT_EQ(bytes(HaloStore::complete, "rows packed"), Expected{});
  wire = DType::bf16;
  EXPECT_EQ(bytes(HaloStore::packed, "rows packed"), (Expected{8 * 2, 5 * 8 * 2}));
  EXPECT_EQ(bytes(HaloStore::complete, "rows packed"), (Expected{5 * 8 * 2, 5 * 8 * 2}));
  for (const HaloStore halo : {HaloStore::packed, HaloStore::dense})
    EXPECT_EQ(bytes(halo, "neighbour groups"), (Expected{groups[0] + 4 * 16, groups[1] + 16}));
}

// Row 0 of rank 0 reads all five rows of rank 1, which sends one sum of them; rank 1 reads one row.
TEST(MemoryPlan, GpusHoldSums) {
  std::vector<test::Edge> edges{{0, 5, 1}};
  for (std::uint64_t v = 5; v < 10; ++v) edges.push_back({v, 0, 1});
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(10, edges, true));
  const PartitionQuality quality = measure_partition(graph, partition_by_vertices(10, 2));
  using Expected = std::vector<std::uint64_t>;
  for (const std::uint64_t directions : {1, 2}) {
    const MemoryPlan plan = plan_gpu_memory(
        quality, {.widths = {8}, .weighted = true, .gradient = directions == 2}, HaloStore::sums);
    const auto bytes = [&](std::string_view name) {
      for (const MemoryItem& item : plan.items)
        if (item.name.starts_with(name)) return item.bytes;
      return Expected{};
    };
    EXPECT_EQ(bytes("shard"), (Expected{directions * (6 * 8 + 8 + 5 * 4),  // an edge, to the sum
                                        directions * (6 * 8 + 8 + 5 * 4)}));
    EXPECT_EQ(bytes("halo lists"), (Expected{directions * 4, directions * 4}));
    EXPECT_EQ(bytes("rows in the symmetric heap"), (Expected{6 * 8 * 4, 6 * 8 * 4}));
    EXPECT_EQ(bytes("sums for other ranks"),
              (Expected{directions * 2 * 8, directions * (8 * 4 + 5 * 8 + 3 * 8)}));
  }
  // The whole shard is still there when the edges to the block leave it.
  const MemoryPlan plan =
      plan_gpu_memory(quality, {.widths = {0}, .weighted = true}, HaloStore::sums);
  EXPECT_GE(plan.items.back().bytes[0], 5u * 8);
}

TEST(MemoryPlan, GpusHoldTheRecordsOfCutRows) {
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(10, {{0, 5, 1}}, false));
  const PartitionQuality quality = measure_partition(graph, partition_by_vertices(10, 2));
  for (const std::uint64_t records : {1, 2}) {
    const MemoryQuestion question{.widths = {6}, .cut_sums = {3, 0}, .rows_per_sum = records};
    for (const MemoryItem& item : plan_gpu_memory(quality, question, HaloStore::dense).items) {
      if (item.name == "sums of neighbour groups") {
        EXPECT_EQ(item.bytes, (std::vector<std::uint64_t>{records * 3 * 8 * 4, 0}));
      }
    }
  }
}

// Groups are counted once for each schedule, and passes with the same cuts share theirs.
TEST(MemoryPlan, SchedulesOfOperationsOverEdgesHaveTheirGroups) {
  constexpr RankLoad kLoad{612258, 1836506, 8'000'000, 23'000'000};  // a quarter of products
  PartitionQuality quality;
  quality.parts.push_back({.vertices = kLoad.own,
                           .edges = kLoad.local_edges + kLoad.remote_edges,
                           .remote_edges = kLoad.remote_edges,
                           .halo_rows = kLoad.halo,
                           .dense_rows = kLoad.halo});
  const auto bytes = [&](const std::vector<PassWidths>& scheduled) {
    const MemoryPlan plan =
        plan_gpu_memory(quality, {.widths = {72}, .scheduled = scheduled}, HaloStore::dense);
    for (const MemoryItem& item : plan.items)
      if (item.name == "neighbour groups") return item.bytes[0];
    return std::uint64_t{0};
  };
  const auto groups = [&](const PassWidths& widths) {
    return 16 * kLoad.own * (1 + halo_cuts(kLoad, widths).size());
  };
  const PassWidths sum{288, 288}, narrow{800, 400, EdgeWork::extremum},
      wide{400, 800, EdgeWork::extremum};
  ASSERT_FALSE(halo_cuts(kLoad, narrow).empty());
  EXPECT_EQ(bytes({}), groups(sum));  // of the widths
  EXPECT_EQ(bytes({narrow}), groups(narrow));
  EXPECT_EQ(bytes({narrow, narrow}), groups(narrow));
  const bool same = halo_cuts(kLoad, narrow) == halo_cuts(kLoad, wide);
  EXPECT_EQ(bytes({narrow, wide}), groups(narrow) + (same ? 0 : groups(wide)));
}

// Rank 0 has 5 rows, of which one has 3 local and 40 remote edges.
TEST(MemoryPlan, GroupsOfGetFollowItsSettings) {
  std::vector<test::Edge> edges;
  for (std::uint64_t v = 1; v < 4; ++v) edges.push_back({v, 0, 1});
  for (std::uint64_t i = 0; i < 40; ++i) edges.push_back({5 + i % 5, 0, 1});
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(10, edges, false));
  const PartitionQuality quality = measure_partition(graph, partition_by_vertices(10, 2));
  const auto bytes = [&](const GetTuning& get) {
    for (const MemoryItem& item :
         plan_gpu_memory(quality, {.widths = {8}, .get = get}, HaloStore::none).items)
      if (item.name == "neighbour groups") return item.bytes[0];
    return std::uint64_t{0};
  };
  // Each row has at most one group of either kind that is not full.
  EXPECT_EQ(bytes({.ps = GetTuning::kWholeRow}), 16u * (5 + 5));
  EXPECT_EQ(bytes({.ps = 16}), 16u * (5 + 5 + 43 / 16));
  EXPECT_EQ(bytes({.ps = 1}), 16u * (5 + 5 + 43));
  EXPECT_EQ(bytes({.ps = 16, .remote_ps = 2}), 16u * (5 + 5 + 43 / 2));
}

TEST(MemoryPlan, PagedRowsAreThoseOfThePartAlone) {
  std::vector<test::Edge> edges{{9, 0, 1}};
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(10, edges, false));
  const PartitionQuality quality = measure_partition(graph, partition_by_vertices(10, 2));
  for (const MemoryItem& item : plan_gpu_memory(quality, {.widths = {8}}, HaloStore::paged).items) {
    EXPECT_FALSE(item.name.starts_with("rows in the symmetric heap"));
    if (item.name.starts_with("rows in managed memory")) {
      EXPECT_EQ(item.bytes, (std::vector<std::uint64_t>{6 * 8 * 4, 5 * 8 * 4}));
    }
  }
}

TEST(MemoryPlan, RefusesWhatOneGpuCannotHold) {
  const AnyCsr graph = test::random_csr<std::uint32_t>(200, 3000, 4);
  const auto quality = measure_partition(graph, partition_by_edges(graph, 2));
  const MemoryPlan plan = plan_gpu_memory(quality, {.widths = {64}}, HaloStore::dense);
  EXPECT_NO_THROW(require_fit_on_gpus(plan, {plan.rank_total(0), plan.rank_total(1)}));
  EXPECT_THROW(require_fit_on_gpus(plan, {plan.rank_total(0), plan.rank_total(1) - 1}),
               DoesNotFitError);
  EXPECT_NO_THROW(require_fit_on_gpus(plan, {}));  // no GPU to compare with
  for (const HaloStore halo : {HaloStore::dense, HaloStore::packed, HaloStore::sums,
                               HaloStore::complete, HaloStore::none, HaloStore::paged})
    EXPECT_EQ(plan_gpu_memory(quality, {.widths = {~std::uint64_t{0}}}, halo).total(),
              ~std::uint64_t{0});
}

TEST(MemoryPlan, CountsWhatACommandKeeps) {
  const AnyCsr graph = test::random_csr<std::uint32_t>(200, 3000, 4);
  const auto quality = measure_partition(graph, partition_by_edges(graph, 2));
  const auto plan = [&](const MemoryQuestion& q) {
    return plan_memory(quality, q, HaloStore::distinct);
  };
  const MemoryPlan run = plan({.widths = {64}});
  const std::uint64_t first = run.rank_total(0), second = run.rank_total(1);
  const MemoryPlan kept = plan({.widths = {64}, .beside = {1000, 2000}});
  EXPECT_EQ(kept.rank_total(0), first + 1000);
  EXPECT_EQ(kept.rank_total(1), second + 2000);
  const MemoryQuestion on_gpus{.widths = {64}, .beside = {1000, 2000}};
  const MemoryPlan host = plan_host_of_gpus(quality, on_gpus);
  EXPECT_EQ(host.items[0].bytes, on_gpus.beside);
  EXPECT_GT(host.rank_total(0), 1000 + quality.parts[0].edges * sizeof(std::uint32_t));
}

// Counts past 2^32 must not wrap: the largest graph that MGG's authors name, times a hundred.
TEST(MemoryPlan, CountsBillionsOfEdges) {
  PartitionQuality quality;
  quality.parts.assign(4, {.vertices = 3'000'000'000,
                           .edges = 160'000'000'000,
                           .remote_edges = 120'000'000'000,
                           .halo_rows = 3'500'000'000});
  const MemoryPlan plan =
      plan_memory(quality, {.widths = {128}, .gradient = true}, HaloStore::distinct);
  EXPECT_EQ(plan.items[2].bytes[0], 6'500'000'000ull * 128 * 4);
  EXPECT_GT(plan.total(), 4 * 2 * 160'000'000'000ull * 4);
}

}  // namespace
}  // namespace plait
