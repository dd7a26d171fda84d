#include "plait/placement/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plait/graph/build.h"
#include "plait/placement/graph_shards.h"
#include "plait/placement/own_rows.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using Entries = std::multimap<std::pair<std::uint64_t, std::uint64_t>, float>;

// Adds every edge of a shard, with slots turned back into global ids.
void add_edges(const Shard& shard, const Partition& partition, Entries& entries) {
  for (std::uint64_t i = 0; i < shard.own; ++i)
    for (EdgeOffset e = shard.offsets[i]; e < shard.offsets[i + 1]; ++e) {
      const Slot slot = shard.slots[e];
      const bool local = e < shard.split[i];
      ASSERT_EQ(local, slot < shard.own);
      std::uint64_t from = 0;
      if (local) {
        from = partition.vertex(shard.rank, slot);
      } else {
        const auto h = slot - shard.own;
        ASSERT_LT(h, shard.halo.rows());
        from = partition.vertex(static_cast<int>(shard.halo.owner[h]), shard.halo.row[h]);
      }
      entries.insert({{partition.vertex(shard.rank, i), from},
                      shard.weights.empty() ? 1.0f : shard.weights[e]});
    }
}

template <VertexId V>
Entries all_edges(const Csr<V>& graph, bool transposed) {
  Entries entries;
  for (std::uint64_t i = 0; i < graph.vertices(); ++i)
    for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e) {
      const std::uint64_t j = graph.neighbours[e];
      entries.insert({transposed ? std::pair(j, i) : std::pair(i, j), graph.weight(e)});
    }
  return entries;
}

void check_halo(const Shard& shard, HaloKind kind, const Partition& partition) {
  ASSERT_EQ(shard.halo.starts.size(), static_cast<std::size_t>(shard.parts) + 1);
  for (int part = 0; part < shard.parts; ++part) {
    const auto begin = shard.halo.starts[static_cast<std::size_t>(part)];
    for (std::uint64_t k = 0; k < shard.halo.rows_of(part); ++k) {
      ASSERT_EQ(shard.halo.owner[begin + k], static_cast<std::uint32_t>(part));
      if (k > 0) {
        ASSERT_LT(shard.halo.row[begin + k - 1], shard.halo.row[begin + k]);
      }
    }
    if (part == shard.rank) {
      ASSERT_EQ(shard.halo.rows_of(part), 0u);
    } else if (kind == HaloKind::complete) {
      ASSERT_EQ(shard.halo.rows_of(part), partition.size(part));
    }
  }
  if (kind == HaloKind::complete) return;
  std::vector<bool> read(shard.halo.rows(), false);
  for (const Slot slot : shard.slots)
    if (slot >= shard.own) read[slot - shard.own] = true;
  EXPECT_TRUE(std::ranges::all_of(read, [](bool r) { return r; }))
      << "a halo row that no edge reads";
}

TEST(Shard, EveryEdgeIsInExactlyOneShard) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const std::uint64_t vertices = 1 + seed * 5 % 97;
    const AnyCsr any =
        seed % 2 ? AnyCsr(test::random_csr<std::uint32_t>(vertices, seed * 11, seed, true))
                 : AnyCsr(test::random_csr<std::uint64_t>(vertices, seed * 11, seed));
    for (const PartitionScheme scheme : partition_schemes())
      for (const HaloKind kind : {HaloKind::distinct, HaloKind::complete}) {
        const int parts = 1 + static_cast<int>(seed % 4);
        const Partition partition = make_partition(scheme, any, parts);
        Entries forward, backward;
        for (int rank = 0; rank < parts; ++rank) {
          const auto shards = make_graph_shards(any, false, partition, rank, {.halo = kind});
          add_edges(shards.forward, partition, forward);
          add_edges(shards.backward(), partition, backward);
          check_halo(shards.forward, kind, partition);
          check_halo(shards.backward(), kind, partition);
        }
        std::visit(
            [&](const auto& graph) {
              EXPECT_EQ(forward, all_edges(graph, false));
              EXPECT_EQ(backward, all_edges(graph, true));
            },
            any);
      }
  }
}

TEST(Shard, KeepsTheOrderOfARowWithinLocalAndRemote) {
  const auto graph = test::random_csr<std::uint32_t>(50, 2000, 5);
  const Partition partition = partition_by_vertices(50, 3);
  const Shard shard = make_shard(own_rows(graph, partition, 1), partition, 1);
  for (std::uint64_t i = 0; i < shard.own; ++i) {
    const auto ascending = [&](EdgeOffset begin, EdgeOffset end) {
      return std::is_sorted(shard.slots.begin() + static_cast<std::ptrdiff_t>(begin),
                            shard.slots.begin() + static_cast<std::ptrdiff_t>(end));
    };
    EXPECT_TRUE(ascending(shard.offsets[i], shard.split[i]));
    EXPECT_TRUE(ascending(shard.split[i], shard.offsets[i + 1]));
  }
}

// A row lists the same vertices in the same order on whichever rank it is, both ways.
TEST(Shard, KeepsTheOrderOfTheGraphIfAsked) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const AnyCsr any(test::random_csr<std::uint32_t>(50, 1000, seed, true));
    const auto rows_of = [&](const Partition& partition) {
      std::map<std::pair<bool, std::uint64_t>, std::vector<std::pair<std::uint64_t, float>>> rows;
      for (int rank = 0; rank < partition.parts(); ++rank) {
        const auto shards = make_graph_shards(
            any, false, partition, rank, {.one_loop_each = true, .order = EdgeOrder::as_given});
        for (const bool back : {false, true}) {
          const Shard& shard = back ? shards.backward() : shards.forward;
          const auto vertices = vertices_of_slots(shard, partition);
          EdgeOffset remote = 0;
          for (std::uint64_t i = 0; i < shard.own; ++i)
            for (EdgeOffset e = shard.offsets[i]; e < shard.offsets[i + 1]; ++e) {
              rows[{back, vertices[i]}].emplace_back(vertices[shard.slots[e]], shard.weights[e]);
              remote += shard.slots[e] >= shard.own ? 1 : 0;
            }
          EXPECT_EQ(shard.remote_edges(), remote);
        }
      }
      return rows;
    };
    const auto wanted = rows_of(partition_by_vertices(50, 1));
    for (const PartitionScheme scheme : partition_schemes())
      EXPECT_EQ(rows_of(make_partition(scheme, any, 3)), wanted);
  }
}

template <class T>
std::vector<T> copy_of(const Array<T>& array) {
  return {array.begin(), array.end()};
}

void expect_same_rows(const Shard& found, const Shard& wanted) {
  EXPECT_EQ(found.own, wanted.own);
  EXPECT_EQ(copy_of(found.offsets), copy_of(wanted.offsets));
  EXPECT_EQ(copy_of(found.split), copy_of(wanted.split));
  EXPECT_EQ(copy_of(found.slots), copy_of(wanted.slots));
  EXPECT_EQ(copy_of(found.weights), copy_of(wanted.weights));
  EXPECT_EQ(found.vertices, wanted.vertices);
  EXPECT_EQ(found.halo.rows(), 0u);
}

// Returns graphs without vertices, without edges and of one vertex, a hub that reads and is read
// by all, and random ones; some have loops and parallel edges.
template <VertexId V>
std::vector<AnyCsr> odd_graphs(bool weighted) {
  std::vector<AnyCsr> graphs;
  const auto add = [&](std::uint64_t vertices, const std::vector<test::Edge>& edges) {
    graphs.push_back(build_csr(test::edge_list<V>(vertices, edges, weighted)));
  };
  add(0, {});
  add(1, {});
  add(9, {});
  add(1, {{0, 0, 2}, {0, 0, 3}});
  std::vector<test::Edge> hub;
  for (std::uint64_t v = 0; v < 40; ++v) {
    hub.push_back({v, 7, static_cast<float>(v)});
    hub.push_back({7, v, static_cast<float>(2 * v)});
  }
  add(40, hub);
  for (unsigned seed = 0; seed < 20; ++seed)
    add(1 + seed * 7, test::random_edges(1 + seed * 7, seed * 30, seed));
  return graphs;
}

// A second part that owns nothing makes the first go the way of several ranks.
TEST(Shard, OfAllVerticesIsTheSameWithAndWithoutAnEmptySecondPart) {
  for (const bool weighted : {false, true})
    for (auto graphs : {odd_graphs<std::uint32_t>(weighted), odd_graphs<std::uint64_t>(weighted)})
      for (const AnyCsr& graph : graphs)
        for (const bool loops : {false, true})
          for (const EdgeOrder order : {EdgeOrder::local_first, EdgeOrder::as_given}) {
            const std::uint64_t vertices = vertex_count(graph);
            const ShardOptions options{
                .one_loop_each = loops, .loop_weight = 0.5, .slot_vertices = true, .order = order};
            const auto alone =
                make_graph_shards(graph, false, Partition::contiguous({0, vertices}), 0, options);
            const auto wanted = make_graph_shards(
                graph, false, Partition::contiguous({0, vertices, vertices}), 0, options);
            expect_same_rows(alone.forward, wanted.forward);
            expect_same_rows(*alone.transposed, *wanted.transposed);
            EXPECT_EQ(alone.degree, wanted.degree);
            EXPECT_EQ(alone.forward.halo.starts, (std::vector<std::uint64_t>{0, 0}));
          }
}

// Neighbours need not ascend in a graph that was not built here.
TEST(Shard, OfAllVerticesKeepsRowsThatAreNotSorted) {
  const Csr32 graph{std::vector<EdgeOffset>{0, 4, 5, 7},
                    std::vector<std::uint32_t>{2, 0, 1, 0, 0, 2, 1},
                    std::vector<float>{1, 2, 3, 4, 5, 6, 7}};
  for (const bool loops : {false, true}) {
    const ShardOptions options{.one_loop_each = loops};
    const auto alone = make_graph_shards(graph, false, Partition::contiguous({0, 3}), 0, options);
    const auto wanted =
        make_graph_shards(graph, false, Partition::contiguous({0, 3, 3}), 0, options);
    expect_same_rows(alone.forward, wanted.forward);
    expect_same_rows(*alone.transposed, *wanted.transposed);
  }
}

TEST(OneLoopEach, DropsLoopsAndAddsOneInPlace) {
  // Rows: 0 <- 0 (weight 3), 0 (weight 5), 1; 1 <- none; 2 <- 0.
  const auto graph = build_csr(
      test::edge_list<std::uint32_t>(3, {{0, 0, 3}, {0, 0, 5}, {1, 0, 2}, {0, 2, 4}}, true));
  const Partition partition = partition_by_vertices(3, 1);
  const auto looped = with_one_loop_each(own_rows(graph, partition, 0), partition, 0);
  EXPECT_EQ(std::vector(looped.offsets.begin(), looped.offsets.end()),
            (std::vector<EdgeOffset>{0, 2, 3, 5}));
  EXPECT_EQ(std::vector(looped.neighbours.begin(), looped.neighbours.end()),
            (std::vector<std::uint32_t>{0, 1, 1, 0, 2}));
  EXPECT_EQ(std::vector(looped.weights.begin(), looped.weights.end()),
            (std::vector<float>{5, 2, 1, 4, 1}));
}

TEST(OneLoopEach, OfTheTransposeIsTheTransposeOfIt) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto graph = test::random_csr<std::uint32_t>(1 + seed, seed * 4, seed, false);
    const Partition partition = partition_by_hash(graph.vertices(), 3);
    Entries forward, backward;
    for (int rank = 0; rank < 3; ++rank) {
      const auto shards = make_graph_shards(graph, false, partition, rank, {.one_loop_each = true});
      add_edges(shards.forward, partition, forward);
      Entries turned;
      add_edges(shards.backward(), partition, turned);
      for (const auto& [edge, weight] : turned)
        backward.insert({{edge.second, edge.first}, weight});
      for (std::uint64_t r = 0; r < shards.forward.own; ++r)
        EXPECT_EQ(shards.degree[r],
                  static_cast<float>(shards.forward.offsets[r + 1] - shards.forward.offsets[r]));
    }
    EXPECT_EQ(forward, backward);
  }
}

}  // namespace
}  // namespace plait
