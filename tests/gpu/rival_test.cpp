// The rivals of strategy `get` (measure/cuda/rival_bench.h), compared with sums in double
// precision; ranks share GPUs where there are fewer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/measure/cuda/rival_bench.h"
#include "tests/gpu/aggregate_checks.h"

namespace plait::test {
namespace {

void check_rival(World& world, GetRival rival, unsigned seed) {
  const Case c(seed);
  const AnyCsr graph = c.graph;
  for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash}) {
    const Partition partition = make_partition(scheme, c.graph, world.size());
    for (const GetTuning& tuning :
         {GetTuning{}, GetTuning{.ps = GetTuning::kWholeRow, .dist = 1, .interleave = false},
          GetTuning{.ps = 3, .dw = 32, .sums = GroupSums::atomic}}) {
      RivalBench bench(world, graph, partition, rival, tuning, c.width);
      const std::string name =
          fmt::format("seed {}, {}, rival {}", seed, to_string(scheme), static_cast<int>(rival));
      expect(bench.check() < 1e-5, name + " is wrong");
      const Times times = bench.time_steps({.repetitions = 2, .seconds = 0.001});
      expect(times.ms.size() == 2 && times.least() > 0, name + " takes no time");
      expect(bench.check() < 1e-5, name + " is wrong after more steps");
    }
  }
}

const RankProgram kRivals("gpu rivals", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (const GetRival rival : {GetRival::managed_rows, GetRival::pushed_rows}) {
    for (unsigned seed = 0; seed < 4; ++seed) check_rival(world, rival, seed);
    const Case c(3);
    bool refused = false;
    try {
      RivalBench(world, c.graph, partition_by_vertices(c.graph.vertices(), world.size()), rival, {},
                 std::uint64_t{1} << 40);
    } catch (const DoesNotFitError&) {  // on all ranks
      refused = true;
    }
    expect(refused, "a width that no GPU has room for is refused");
  }
});

TEST(GpuRivals, OneToThreeRanksEqualSumsInDoublePrecision) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu rivals", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

}  // namespace
}  // namespace plait::test
