// Sums that cross between GPUs in place of rows, the bytes that cross, and rows of all widths.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "plait/base/gpu.h"
#include "plait/world/gather.h"
#include "tests/gpu/aggregate_checks.h"

namespace plait::test {
namespace {

// Graphs of which some ranks need few sums of many rows.
std::vector<Case> cases_for_sums() {
  std::mt19937 random(1);
  std::vector<Edge> star, hubs = random_edges(300, 60, 2), bipartite;
  for (std::uint64_t v = 1; v < 200; ++v) star.push_back({v, 0, 2}), star.push_back({0, v, 3});
  for (std::uint64_t v = 0; v < 300; ++v)
    for (const std::uint64_t hub : {17, 150, 290})
      hubs.push_back({v, hub, static_cast<float>(1 + random() % 4)});
  // Edges lead from 150 vertices to 10, twice from some to the latter.
  for (std::uint64_t target = 0; target < 10; ++target)
    for (int k = 0; k < 90; ++k) bipartite.push_back({10 + random() % 150, target, 0.5f});
  const auto csr = [](std::uint64_t vertices, const std::vector<Edge>& edges, bool weighted) {
    return build_csr(edge_list<std::uint32_t>(vertices, edges, weighted));
  };
  std::vector<Case> cases;
  cases.emplace_back(csr(200, star, true), 3, 1);
  cases.emplace_back(csr(300, hubs, true), 32, 2);
  cases.emplace_back(csr(160, bipartite, false), 64, 3);
  return cases;
}

// Returns the rows or sums that a rank is to get. Of each other rank, it gets all rows that an edge
// reads, or all rows if at least four fifths are read; with `sums`, one sum per row that reads
// some, if these are at most half as many.
std::uint64_t rows_to_get(const Case& c, const Partition& partition, int rank, bool transposed,
                          bool sums) {
  const auto ranks = static_cast<std::size_t>(partition.parts());
  std::vector<std::set<std::uint64_t>> read(ranks), readers(ranks);
  for (std::uint64_t i = 0; i < c.graph.vertices(); ++i)
    for (const std::uint64_t j : c.graph.row(i)) {
      const std::uint64_t to = transposed ? j : i, from = transposed ? i : j;
      if (partition.owner(to) != rank) continue;
      const auto owner = static_cast<std::size_t>(partition.owner(from));
      read[owner].insert(from), readers[owner].insert(to);
    }
  std::uint64_t rows = 0;
  for (int owner = 0; owner < partition.parts(); ++owner) {
    if (owner == rank) continue;
    const auto p = static_cast<std::size_t>(owner);
    const std::uint64_t size = partition.size(owner), some = read[p].size();
    const std::uint64_t sent = some + size / 5 >= size ? size : some;
    rows += sums && 2 * readers[p].size() <= sent ? readers[p].size() : sent;
  }
  return rows;
}

// Checks results and the bytes that cross: by the rule, and fewer than with rows alone.
void check_sums(World& world, const Case& c) {
  for (const PartitionScheme scheme : partition_schemes())
    for (const DType wire : {DType::f32, DType::bf16}) {
      const Partition partition = make_partition(scheme, c.graph, world.size());
      std::uint64_t bytes[2] = {};
      for (const bool sums : {false, true}) {
        Placed placed(
            world, c, partition,
            {.route = {.strategy = sums ? Strategy::partial : Strategy::pipelined, .wire = wire},
             .max_width = c.width});
        for (int bits = 0; bits < 16; ++bits) {
          const Way way{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
          const std::string name = fmt::format("graph {} {} {} wire {} way {}", c.seed,
                                               to_string(scheme), sums, to_string(wire), bits);
          placed.expect_right(way, wire == DType::f32 ? 2e-6 : 5e-3, name);
          const std::uint64_t found = placed.bytes_fetched(way);
          const std::uint64_t expected =
              rows_to_get(c, partition, world.rank(), way.transposed, sums) *
              row_bytes(c.width, wire);
          expect(found == expected, name + fmt::format(": {} bytes, not {}", found, expected));
          if (!way.transposed) bytes[sums] = found;
        }
        EdgeOffset edges = 0;
        for (const EdgeOffset of_rank : gather_values(world, placed.edges())) edges += of_rank;
        expect(edges == c.graph.edges(), "edges of own rows");
      }
      std::uint64_t all[2] = {};
      for (const int sums : {0, 1})
        for (const std::uint64_t of_rank : gather_values(world, bytes[sums])) all[sums] += of_rank;
      expect(all[1] < all[0] || scheme == PartitionScheme::metis,
             fmt::format("graph {} {}: sums save nothing", c.seed, to_string(scheme)));
    }
}

// Checks unscaled and scaled, back and forth, at each width, by one aggregator that has room for
// the greatest; and the bytes that cross.
void check_widths(World& world, Strategy strategy, DType wire) {
  const Csr32 graph = random_csr<std::uint32_t>(90, 1500, 7, true);
  const Case widest(graph, 130, 1);
  const Partition partition = make_partition(PartitionScheme::hash, graph, world.size());
  const Placed all(world, widest, partition,
                   {.route = {.strategy = strategy, .wire = wire}, .max_width = widest.width});
  const bool sums = strategy == Strategy::partial;
  for (std::uint64_t width = 1; width <= widest.width; ++width) {
    const Case c(graph, width, static_cast<unsigned>(width));
    Placed placed(all, c);
    const std::string name =
        fmt::format("{} wire {} width {}", to_string(strategy), to_string(wire), width);
    const double tolerance = wire == DType::f32 ? 2e-6 : 5e-3;
    const bool weighted = width % 2 == 0;
    placed.expect_right({.weighted = weighted}, tolerance, name);
    placed.expect_right({.weighted = weighted, .transposed = true}, tolerance, name + " back");
    placed.expect_right({.weighted = weighted, .pre = true, .post = true}, tolerance,
                        name + " scaled");
    if (strategy == Strategy::get) continue;
    const std::uint64_t rows = rows_to_get(c, partition, world.rank(), false, sums);
    expect(placed.bytes_fetched({}) == rows * row_bytes(width, wire), name + ": bytes");
  }
}

const RankProgram kSums("gpu sums", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (const Case& c : cases_for_sums()) check_sums(world, c);
  for (const Case& c : cases_for_sums()) check_passes(world, c, Strategy::partial);
});

const RankProgram kWidths("gpu widths", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const bool nccl = world.size() <= gpu_count();
  for (const Strategy strategy :
       {Strategy::pipelined, Strategy::partial, Strategy::get, Strategy::paged, Strategy::bulk})
    for (const DType wire : {DType::f32, DType::bf16}) {
      const bool fp32 = strategy == Strategy::get || strategy == Strategy::paged;
      if ((wire == DType::f32 || !fp32) && (nccl || strategy != Strategy::bulk))
        check_widths(world, strategy, wire);
    }
});

// Halos have many pages, and rows are cut into several groups.
const RankProgram kLarger("gpu larger", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  std::vector<Edge> edges = random_edges(6000, 40000, 5);
  for (std::uint64_t v = 0; v < 6000; ++v)
    edges.push_back({v, 1234, 1}), edges.push_back({v, 4321, 2});
  const Case c(build_csr(edge_list<std::uint32_t>(6000, edges, true)), 64, 5);
  for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash}) {
    const Partition partition = make_partition(scheme, c.graph, world.size());
    for (const Strategy strategy : kPartialAndPaged) {
      Placed placed(world, c, partition, {.route = {.strategy = strategy}, .max_width = c.width});
      for (const bool transposed : {false, true})
        placed.expect_right({true, true, true, transposed}, 4e-6,
                            fmt::format("larger, {} {}", to_string(scheme), to_string(strategy)));
    }
  }
});

TEST(GpuAggregate, SumsCrossInsteadOfMoreRows) {
  expect_on_ranks("gpu sums");
  expect_on_ranks("gpu larger");
}

TEST(GpuAggregate, AllWidths) {
  const auto world = World::alone();
  for (const Strategy strategy : {Strategy::pipelined, Strategy::get, Strategy::paged})
    check_widths(*world, strategy, DType::f32);
  for (const int ranks : {2, 3}) {
    const Outcome outcome = run_job({.program = "gpu widths", .ranks = ranks, .timeout_ms = 20000});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

}  // namespace
}  // namespace plait::test
