// Pushes to owners on GPUs against a slow version, and what a lost rank leaves. Ranks share GPUs
// where there are fewer.
#include "plait/exchange/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/delay.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "tests/exchange/messages_case.h"

namespace plait::test {
namespace {

template <class T>
std::span<T> all_of(DeviceArray<T>& array) {
  return {array.data(), array.size()};
}

template <class T>
struct OnGpu {
  Pushed operator()(Messages& messages, std::vector<T>& values, std::vector<std::uint32_t>& marks,
                    Merge how, std::uint64_t word) const {
    DeviceArray<T> there{std::span<const T>(values)};
    DeviceArray<std::uint32_t> marked{std::span<const std::uint32_t>(marks)};
    const auto bring_back = [&] { values = there.to_host(), marks = marked.to_host(); };
    try {
      Pushed pushed = messages.push(all_of(there), all_of(marked), how, word);
      bring_back();
      return pushed;
    } catch (const UsageError&) {
      bring_back();
      throw;
    }
  }
};

std::unique_ptr<Exchange> exchange_of(World& world, const Csr32& graph,
                                      const Partition& partition) {
  return make_gpu_exchange(world, graph, false, partition,
                           {.shards = {.slot_vertices = true}, .max_width = 1});
}

void check_graph(World& world, const Csr32& graph, PartitionScheme scheme) {
  const Partition partition = make_partition(scheme, graph, world.size());
  const auto exchange = exchange_of(world, graph, partition);
  check_all_pushes<OnGpu>(world, *exchange, partition, [](std::span<const std::uint64_t> span) {
    std::vector<std::uint64_t> vertices(span.size());
    if (!span.empty()) copy_to_host(vertices.data(), span.data(), span.size_bytes());
    return vertices;
  });
}

const RankProgram pushes("gpu pushes", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  check_graph(world, random_csr<std::uint32_t>(70, 300, 1), PartitionScheme::hash);
  check_graph(world, random_csr<std::uint32_t>(257, 12000, 2), PartitionScheme::edges);  // whole
  check_graph(world, star_both_ways(100, true).graph, PartitionScheme::vertices);
  check_graph(world, random_csr<std::uint32_t>(5, 0, 3), PartitionScheme::vertices);
  switch_delays(static_cast<std::uint64_t>(world.rank()) + 1, std::chrono::microseconds(500));
  check_graph(world, random_csr<std::uint32_t>(90, 500, 4), PartitionScheme::hash);
});

TEST(GpuMessages, AreMergedAsASlowVersionMergesThem) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu pushes", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

const RankProgram refused("refused gpu pushes", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Csr32 graph = star_both_ways(40, false).graph;  // all rows read vertex 0
  const Partition partition = make_partition(PartitionScheme::edges, graph, world.size());
  check_refusals<OnGpu>(world, *exchange_of(world, graph, partition), partition, false);
});

TEST(GpuMessages, AreRefusedByAllRanksOrNone) {
  const Outcome outcome =
      run_job({.program = "refused gpu pushes", .ranks = 3, .timeout_ms = 20000});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// A rank is killed, and the others find no number in whole numbers either.
const RankProgram lost("lost gpu pushes", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Csr32 graph = star_both_ways(60, false).graph;
  const Partition partition = make_partition(PartitionScheme::edges, graph, world.size());
  const auto exchange = exchange_of(world, graph, partition);
  const auto messages = exchange->make_messages(Direction::along);
  const std::uint64_t slots = exchange->vertices(Direction::along).size();
  DeviceArray<std::uint64_t> values{std::vector<std::uint64_t>(slots, 5)};
  DeviceArray<std::uint32_t> marks{std::vector<std::uint32_t>(mark_words(slots))};
  say_ready(world);
  try {
    for (;;) messages->push(all_of(values), all_of(marks), Merge::min);
  } catch (const LostRankError&) {
    expect(values.to_host() == std::vector<std::uint64_t>(slots, ~std::uint64_t{0}),
           "values are marked");
    expect(marks.to_host() == std::vector<std::uint32_t>(mark_words(slots), ~std::uint32_t{0}),
           "marks are marked");
    say("marked");
    throw;
  }
});

TEST(GpuMessages, OfALostRankLeaveNoNumber) {
  Job job({"lost gpu pushes", 2});
  job.await_ready(2);
  ASSERT_EQ(kill(job.rank(1), SIGKILL), 0);
  job.await("marked");
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.all_errors(), testing::HasSubstr("rank 1"));
}

TEST(GpuMessages, AreRefusedWhereSumsStandInSlots) {
  const auto world = World::alone();
  const Csr32 graph = random_csr<std::uint32_t>(20, 60, 1);
  const Partition partition = make_partition(PartitionScheme::edges, graph, 1);
  const auto exchange = make_gpu_exchange(*world, graph, false, partition,
                                          {.route = {.strategy = Strategy::partial}});
  EXPECT_THROW(exchange->make_messages(Direction::along), UsageError);
}

}  // namespace
}  // namespace plait::test
