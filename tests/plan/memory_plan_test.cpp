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
          plan_memory(measure_partition(graph, partition),
                      {.width = 16, .weighted = weighted, .replicate = replicate});
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

TEST(MemoryPlan, RefusesWithTheFigures) {
  const AnyCsr graph = test::random_csr<std::uint32_t>(200, 3000, 4);
  const auto quality = measure_partition(graph, partition_by_edges(graph, 2));
  const MemoryPlan plan = plan_memory(quality, {.width = 64});
  EXPECT_EQ(plan.total(), plan.rank_total(0) + plan.rank_total(1));
  EXPECT_NO_THROW(require_fit(plan, plan.total()));
  try {
    require_fit(plan, plan.total() - 1);
    FAIL();
  } catch (const DoesNotFitError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::does_not_fit);
  }
}

// Counts past 2^32 must not wrap: the largest graph that MGG's authors name, times a hundred.
TEST(MemoryPlan, CountsBillionsOfEdges) {
  PartitionQuality quality;
  quality.parts.assign(4, {.vertices = 3'000'000'000,
                           .edges = 160'000'000'000,
                           .remote_edges = 120'000'000'000,
                           .halo_rows = 3'500'000'000});
  const MemoryPlan plan = plan_memory(quality, {.width = 128, .gradient = true});
  EXPECT_EQ(plan.items[2].bytes[0], 6'500'000'000ull * 128 * 4);
  EXPECT_GT(plan.total(), 4 * 2 * 160'000'000'000ull * 4);
}

}  // namespace
}  // namespace plait
