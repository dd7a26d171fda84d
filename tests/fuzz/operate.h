// Runs the command line's work on a graph, in small: whatever file it came from, a graph that a
// reader has accepted leads no operation outside its arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/build.h"
#include "plait/graph/folds.h"
#include "plait/graph/made_features.h"
#include "plait/graph/renumber.h"
#include "plait/graph/validate.h"
#include "plait/io/io.h"
#include "plait/kernels/spmm.h"
#include "plait/partition/partition.h"
#include "plait/partition/quality.h"
#include "plait/placement/graph_shards.h"
#include "plait/placement/own_rows.h"
#include "plait/placement/row_block.h"
#include "plait/plan/memory_plan.h"
#include "plait/reorder/reorder.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/hostile_container.h"

namespace plait {

inline void must(bool condition) {
  if (!condition) std::abort();
}

// Runs work that may refuse.
template <class Act>
void try_to(Act act) {
  try {
    act();
  } catch (const Error&) {
  }
}

inline void sum_rows(const Shard& shard) {
  constexpr std::uint64_t kWidth = 3;
  for (const Slot slot : shard.slots) must(slot < shard.slot_count());
  const std::vector<float> x(shard.slot_count() * kWidth, 1);
  std::vector<float> y(shard.own * kWidth);
  spmm({.begin = shard.begin(),
        .end = shard.end(),
        .columns = shard.slots.data(),
        .weights = shard.weights.empty() ? nullptr : shard.weights.data(),
        .x = {.base = x.data(), .stride = kWidth},
        .width = kWidth,
        .y = y.data(),
        .y_stride = kWidth});
}

inline void plan(const Dataset& dataset, const Partition& partition, std::uint64_t width) {
  const PartitionQuality quality = measure_partition(dataset.graph, partition);
  must(quality.parts.size() == static_cast<std::size_t>(partition.parts()));
  const MemoryQuestion question{.widths = {width},
                                .weighted = is_weighted(dataset.graph),
                                .symmetric = dataset.symmetric,
                                .gradient = true,
                                .contiguous = partition.is_contiguous()};
  must(plan_memory(quality, question, HaloStore::distinct).total() > 0);
  for (const HaloStore halo : {HaloStore::dense, HaloStore::packed, HaloStore::sums,
                               HaloStore::complete, HaloStore::none, HaloStore::paged})
    must(plan_gpu_memory(quality, question, halo).total() > 0);
}

// Cuts the graph by every scheme, and places each rank's part.
inline void spread(const Dataset& dataset, Chooser& choose) {
  const int parts = 1 + choose.below(5);
  const ShardOptions options{
      .one_loop_each = choose.one_in(2),
      .halo = choose.of(std::array{HaloKind::distinct, HaloKind::complete, HaloKind::dense}),
      .slot_vertices = true};
  for (const PartitionScheme scheme : partition_schemes()) {
    const Partition partition = make_partition(scheme, dataset, parts, choose.next());
    for (std::uint64_t v = 0; v < dataset.vertices(); ++v)
      must(partition.vertex(partition.owner(v), partition.row(v)) == v);
    plan(dataset, partition, choose.next());
    for (int rank = 0; rank < parts; ++rank) {
      const GraphShards shards =
          make_graph_shards(dataset.graph, dataset.symmetric, partition, rank, options);
      sum_rows(shards.forward);
      sum_rows(shards.backward());
      std::visit([&](const auto& graph) { by_place(own_rows(graph, partition, rank), partition); },
                 dataset.graph);
    }
  }
}

inline void walk_blocks(const Dataset& dataset, Chooser& choose) {
  const BlockCost cost{.limit = 4u * choose.next(),
                       .per_row = choose.below(16),
                       .per_source = choose.below(16),
                       .edges = true,
                       .one_loop_each = choose.one_in(2),
                       .what = "fuzz"};
  VertexSet sources(dataset.vertices());
  try_to([&] {
    for (std::uint64_t v = 0; v < dataset.vertices();) {
      const BlockRange range = cut_block(dataset.graph, v, dataset.vertices(), cost, sources);
      must(range.end > v);
      const RowBlock block = make_row_block(dataset.graph, range, cost.one_loop_each, sources);
      for (const Slot slot : block.slots)
        must(slot < (block.sources.empty() ? dataset.vertices() : block.sources.size()));
      v = range.end;
    }
  });
}

// Writes the graph in some format; if the format does not refuse, it is read back with as many
// edges.
inline void convert(const Dataset& dataset, Chooser& choose) {
  std::istringstream endings(writable_endings());
  const std::vector<std::string> all{std::istream_iterator<std::string>(endings), {}};
  const std::string ending = choose.of(all);
  const FuzzFile file(ending), neighbours("_csr.bin"), weights("_weight.bin");
  try_to([&] {
    write_dataset(dataset, file.path());
    must(read_dataset(file.path()).edges() == dataset.edges());
  });
}

// Tells whether every edge has its reverse, by sorting.
inline bool has_all_reverses(const AnyCsr& any) {
  return std::visit(
      [](const auto& graph) {
        using Edge = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, float>;
        std::vector<Edge> edges, reverses;
        for (std::uint64_t i = 0; i < graph.vertices(); ++i)
          for (EdgeOffset e = graph.offsets[i], k = 0; e < graph.offsets[i + 1]; ++e) {
            const std::uint64_t j = graph.neighbours[e];
            k = e > graph.offsets[i] && graph.neighbours[e - 1] == j ? k + 1 : 0;
            edges.emplace_back(i, j, k, graph.weight(e));
            reverses.emplace_back(j, i, k, graph.weight(e));
          }
        std::ranges::sort(edges);
        std::ranges::sort(reverses);
        return edges == reverses;
      },
      any);
}

// Renumbers by every method, and undoes it.
inline void reorder(const Dataset& dataset, Chooser& choose) {
  for (const ReorderMethod method : reorder_methods()) {
    const Reordering found = find_order(method, {dataset.graph, dataset.symmetric, choose.next()});
    if (found.order.empty()) continue;
    const Dataset after = renumbered(dataset, found.order.span());
    validate(after, "renumbered");
    must(!dataset.symmetric || has_all_reverses(after.graph));
    must(with_first_numbers(after).edges() == dataset.edges());
  }
}

// `dataset` is one that a reader has accepted.
inline void operate(const Dataset& dataset, Chooser& choose) {
  must(std::visit([](const auto& graph) { return rows_are_sorted(graph); }, dataset.graph));
  if (dataset.vertices() > 1000) return;  // a short text may tell of many
  must(!dataset.symmetric || has_all_reverses(dataset.graph));
  for (const char* kind : {"constant", "degree", "identity"}) make_features(kind, dataset);
  try_to([&] { make_folds(dataset, {.count = 3, .test = choose.below(3)}, choose.next()); });
  spread(dataset, choose);
  walk_blocks(dataset, choose);
  reorder(dataset, choose);
  convert(dataset, choose);
}

}  // namespace plait
