// Rows of plain types on GPUs keep their bits, however they cross; extrema of neighbours by every
// strategy that brings rows. Ranks share GPUs where there are fewer.
#include "plait/exchange/exchange.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/aggregate/extrema_check.h"
#include "tests/support/random_graph.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

// Most of these bits are NaN or denormal as floats.
std::uint32_t bits_of(std::uint64_t vertex, std::uint64_t word) {
  constexpr std::uint32_t kPatterns[] = {0xffffffffu, 0x7fc00000u, 0x7f800001u, 1u};
  return kPatterns[(vertex + word) % 4] ^ (static_cast<std::uint32_t>(vertex) << 3);
}

// `words`: words of 4 bytes per row.
void check_bits(World& world, const Csr32& graph, const Route& route, std::uint64_t words) {
  const Partition partition = make_partition(PartitionScheme::hash, graph, world.size());
  const auto exchange =
      make_gpu_exchange(world, graph, false, partition,
                        {.route = route, .shards = {.slot_vertices = true}, .max_width = words});
  std::vector<std::uint32_t> own;
  for (std::uint64_t i = 0; i < partition.size(world.rank()); ++i)
    for (std::uint64_t w = 0; w < words; ++w)
      own.push_back(bits_of(partition.vertex(world.rank(), i), w));
  const DeviceArray<std::uint32_t> rows{std::span<const std::uint32_t>(own)};
  for (const Direction direction : {Direction::along, Direction::against}) {
    const auto vertices = exchange->vertices(direction);
    std::vector<std::uint64_t> ids(vertices.size());
    copy_to_host(ids.data(), vertices.data(), vertices.size_bytes());
    std::uint64_t wrong = 0;
    exchange->gather(
        direction, rows.data(), words * sizeof(std::uint32_t), {.work = [&](const EdgeRows& edges) {
          std::vector<std::uint32_t> slots(ids.size() * edges.x.stride);
          copy_to_host(slots.data(), edges.x.base, slots.size() * sizeof(std::uint32_t));
          for (std::size_t s = 0; s < ids.size(); ++s)
            for (std::uint64_t w = 0; w < words; ++w)
              wrong += slots[s * edges.x.stride + w] != bits_of(ids[s], w);
        }});
    exchange->check();
    expect(wrong == 0,
           fmt::format("{}, {} words: {} are wrong", to_string(route.strategy), words, wrong));
  }
}

void check_extrema(World& world, const Case& c, Strategy strategy) {
  const Partition partition = make_partition(PartitionScheme::edges, c.graph, world.size());
  const auto aggregator = make_aggregator_for_host_arrays(
      world, c.graph, false, partition,
      {.route = {.strategy = strategy, .gpu = true}, .max_width = c.width});
  check_extrema(world, c, partition, *aggregator, to_string(strategy));
}

const std::vector<Strategy> kBringRows{Strategy::pipelined, Strategy::bulk, Strategy::replicate};

const RankProgram kExchange("gpu exchange", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (const Strategy strategy : kBringRows) {
    // NCCL takes no two ranks on one GPU.
    if (strategy != Strategy::pipelined && world.size() > gpu_count()) continue;
    for (const std::uint64_t words : {1, 3, 4, 17})
      check_bits(world, random_csr<std::uint32_t>(200, 900, 2, false), {.strategy = strategy},
                 words);
    check_extrema(world, Case(3), strategy);
  }
});

TEST(GpuExchange, RowsKeepTheirBitsAndExtremaAreExact) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu exchange", .ranks = ranks, .timeout_ms = 20000});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuExchange, StrategiesThatSumRefuseRows) {
  const auto world = World::alone();
  const Case c(2);
  const Partition partition = make_partition(PartitionScheme::edges, c.graph, 1);
  const DeviceArray<float> x{std::span<const float>(c.x)};
  for (const Strategy strategy : {Strategy::partial, Strategy::get, Strategy::paged}) {
    const auto exchange = make_gpu_exchange(
        *world, c.graph, false, partition, {.route = {.strategy = strategy}, .max_width = c.width});
    EXPECT_THROW(exchange->gather(Direction::along, x.data(), c.width * sizeof(float),
                                  {.work = [](const EdgeRows&) {}}),
                 UsageError)
        << to_string(strategy);
  }
}

}  // namespace
}  // namespace plait::test
