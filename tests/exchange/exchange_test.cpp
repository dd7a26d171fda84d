// Rows of plain types that are no features, brought to edges in both directions, as an analytics
// app or a sampler asks for them.
#include "plait/exchange/exchange.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "plait/base/error.h"
#include "tests/support/random_graph.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

// 12 bytes: as a float, none is a number that arithmetic would keep.
struct Label {
  std::uint32_t vertex, bits;
  std::int32_t negative;
};

Label label_of(std::uint64_t vertex) {
  return {static_cast<std::uint32_t>(vertex), 0x7fc00000u | static_cast<std::uint32_t>(vertex),
          -static_cast<std::int32_t>(vertex)};
}

template <class T, class ValueOf>
void check_rows(World& world, const Csr32& graph, Strategy strategy, const ValueOf& value_of) {
  const Partition partition = make_partition(PartitionScheme::hash, graph, world.size());
  const auto exchange = make_exchange(
      world, graph, false, partition,
      {.route = {.strategy = strategy}, .shards = {.slot_vertices = true}, .max_width = 1});
  exchange->reserve(sizeof(T));
  std::vector<T> own;
  for (std::uint64_t i = 0; i < partition.size(world.rank()); ++i)
    own.push_back(value_of(partition.vertex(world.rank(), i)));
  for (const Direction direction : {Direction::along, Direction::against}) {
    const auto vertices = exchange->vertices(direction);
    std::uint64_t calls = 0, seen = 0;
    exchange->gather(
        direction, own.data(), sizeof(T), {.work = [&](const EdgeRows& edges) {
          ++calls;
          for (std::size_t i = 0; i < edges.begin.size(); ++i)
            for (EdgeOffset e = edges.begin[i]; e < edges.end[i]; ++e, ++seen) {
              const Slot slot = edges.columns[e];
              const T wanted = value_of(vertices[slot]);
              expect(std::memcmp(edges.x.template row_of<T>(slot), &wanted, sizeof(T)) == 0,
                     fmt::format("{}: the row of vertex {}", to_string(strategy), vertices[slot]));
            }
        }});
    expect(calls == 1, "rows are used once");
    double all = static_cast<double>(seen);
    world.all_reduce_sum(std::span(&all, 1));
    expect(all == static_cast<double>(graph.edges()),
           fmt::format("{} edges of {} were seen", all, graph.edges()));
  }
}

const RankProgram kExchange("exchange", [](World& world) {
  for (const Strategy strategy : {Strategy::replicate, Strategy::bulk, Strategy::get})
    for (unsigned seed = 1; seed < 5; ++seed) {
      const auto graph = random_csr<std::uint32_t>(10 + 30 * seed, 200 * seed, seed, false);
      check_rows<Label>(world, graph, strategy, label_of);
      check_rows<std::uint64_t>(world, graph, strategy,
                                [](std::uint64_t v) { return ~v * 0x9e3779b97f4a7c15u; });
    }
});

TEST(Exchange, BringsRowsOfPlainTypes) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome = run_job({.program = "exchange", .ranks = ranks});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(Exchange, RefusesRowsThatItCannotMove) {
  const auto world = World::alone();
  const auto graph = random_csr<std::uint32_t>(10, 30, 1, false);
  const Partition partition = make_partition(PartitionScheme::edges, graph, 1);
  const auto exchange = make_exchange(*world, graph, false, partition, {.max_width = 1});
  const std::vector<double> rows(10);
  const GatherUse use{.work = [](const EdgeRows&) { FAIL() << "there is no room"; }};
  EXPECT_THROW(exchange->gather(Direction::along, rows.data(), 8, use), UsageError);
  EXPECT_THROW(exchange->gather(Direction::along, rows.data(), 3, use), UsageError);
  EXPECT_THROW(exchange->reserve(6), UsageError);
}

}  // namespace
}  // namespace plait::test
