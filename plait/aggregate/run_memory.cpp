#include "plait/aggregate/run_memory.h"

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/saturating.h"
#include "plait/kernels/row_cut.h"
#include "plait/plan/machine.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

template <VertexId V>
EdgeOffset own_edges(const Csr<V>& graph, const Partition& partition, std::size_t part) {
  EdgeOffset edges = 0;
  for (std::uint64_t r = 0; r < partition.size(static_cast<int>(part)); ++r)
    edges += graph.degree(partition.vertex(static_cast<int>(part), r));
  return edges;
}

// The figures of a partition that are known without looking at edges: all rows of all ranks may be
// read.
PartitionQuality bounds_of(const AnyCsr& any, const Partition& partition) {
  PartitionQuality quality;
  quality.parts.resize(static_cast<std::size_t>(partition.parts()));
  std::visit(
      [&](const auto& graph) {
        parallel_for(quality.parts.size(), [&](std::size_t p) {
          PartQuality& part = quality.parts[p];
          part.vertices = partition.size(static_cast<int>(p));
          part.edges = partition.is_whole() ? graph.edges() : own_edges(graph, partition, p);
          const std::uint64_t others = graph.vertices() - part.vertices;
          part.remote_edges = others > 0 ? part.edges : 0;
          part.halo_rows = part.dense_rows = part.listed_rows = others;
          part.packed_rows = part.vertices * (quality.parts.size() - 1);
          part.summed = {.rows = others,
                         .listed_rows = others,
                         .packed_rows = part.packed_rows,
                         .kept_edges = part.edges,
                         .sums = part.packed_rows,
                         .summed_edges = graph.edges() - part.edges};
        });
      },
      any);
  return quality;
}

// Returns, by part, the number of pieces of rows that are cut for one pass over all edges. Strategy
// get cuts rows into groups, local and remote edges apart.
std::vector<std::uint64_t> cut_sums(const AnyCsr& any, const PartitionQuality& quality,
                                    const Partition& partition, const Route& route) {
  const bool get = route.gets_on_gpus();
  const std::uint64_t get_group = route.get.least_neighbours();
  std::vector<std::uint64_t> sums(quality.parts.size());
  std::visit(
      [&](const auto& graph) {
        parallel_for(sums.size(), [&](std::size_t p) {
          const PartQuality& part = quality.parts[p];
          const std::uint32_t most = route.order() == EdgeOrder::as_given
                                         ? kFixedGroup
                                         : group_size(part.edges, part.vertices);
          for (std::uint64_t r = 0; r < part.vertices; ++r) {
            const EdgeOffset edges = graph.degree(partition.vertex(static_cast<int>(p), r));
            const bool both = edges > 1 && sums.size() > 1;  // nearly all rows, where ranks are few
            const std::uint64_t groups =
                get ? (edges + get_group - 1) / get_group + both : cut_row(edges, most).groups;
            if (groups > 1) sums[p] += groups;
          }
        });
      },
      any);
  return sums;
}

MemoryPlan plan_of(const AnyCsr& graph, bool symmetric, const Partition& partition,
                   const PartitionQuality& quality, const RunMemory& run) {
  MemoryQuestion question{.widths = run.widths,
                          .scheduled = run.scheduled,
                          .work = run.work,
                          .edge_scratch = run.edge_scratch,
                          .rows_per_sum = run.rows_per_sum,
                          .wire = run.route.wire,
                          .get = run.route.get,
                          .weighted = is_weighted(graph),
                          .symmetric = symmetric,
                          .gradient = run.shards.transposed,
                          .loops = run.shards.one_loop_each,
                          .slot_vertices = run.shards.slot_vertices,
                          .wide_ids = std::holds_alternative<Csr64>(graph),
                          .contiguous = partition.is_contiguous()};
  const HaloStore store = run.route.placement().store;
  if (!run.route.gpu) return plan_memory(quality, question, store);
  question.cut_sums = cut_sums(graph, quality, partition, run.route);
  return plan_gpu_memory(quality, question, store);
}

// Returns the text of the error on this rank, or nothing.
std::string shortage(const World& world, const MemoryPlan& plan, bool gpu,
                     const std::string& what) {
  std::uint64_t needed = plan.rank_total(world.rank());
  if (!gpu) {
    Bytes together = 0;
    for (const int rank : world.ranks_of_host()) together = together + plan.rank_total(rank);
    needed = together.value;
  }
  const std::uint64_t free = gpu ? gpu_free_memory(needed) : available_memory();
  return failure_of([&] { require_memory(needed, gpu ? what + " on a GPU" : what, free); });
}

}  // namespace

MemoryPlan plan_run(const AnyCsr& graph, bool symmetric, const Partition& partition,
                    const RunMemory& run) {
  return plan_of(graph, symmetric, partition, measure_partition(graph, partition), run);
}

void require_run_fits(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
                      const RunMemory& run, const std::string& what) {
  if (run.route.gpu)  // the account needs it
    agree_on_failure(world, failure_of([] { machine(); }));
  const MemoryPlan bound = plan_of(graph, symmetric, partition, bounds_of(graph, partition), run);
  if (first_failure(world, shortage(world, bound, run.route.gpu, what)).empty()) return;
  const MemoryPlan plan = plan_run(graph, symmetric, partition, run);
  agree_on_failure(world, shortage(world, plan, run.route.gpu, what));
}

}  // namespace plait
