#include "plait/aggregate/run_memory.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/saturating.h"
#include "plait/kernels/row_cut.h"
#include "plait/machine/machine.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// The figures of a partition that are known without looking at edges, if no rank reads rows of
// others.
PartitionQuality least_of(const AnyCsr& any, const Partition& partition) {
  PartitionQuality quality;
  quality.parts.resize(static_cast<std::size_t>(partition.parts()));
  parallel_for(quality.parts.size(), [&](std::size_t p) {
    PartQuality& part = quality.parts[p];
    part.vertices = partition.size(static_cast<int>(p));
    part.edges = own_edges(any, partition, static_cast<int>(p));
  });
  return quality;
}

// The same figures, if every rank reads all rows of all others.
PartitionQuality most_of(PartitionQuality quality, const Partition& partition, EdgeOffset edges) {
  for (PartQuality& part : quality.parts) {
    const std::uint64_t others = partition.vertices() - part.vertices;
    part.remote_edges = others > 0 ? part.edges : 0;
    part.halo_rows = part.dense_rows = part.listed_rows = others;
    part.packed_rows = part.vertices * (quality.parts.size() - 1);
    part.summed = {.rows = others,
                   .listed_rows = others,
                   .packed_rows = part.packed_rows,
                   .kept_edges = part.edges,
                   .sums = part.packed_rows,
                   .summed_edges = edges - part.edges};
  }
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

// Partitions and pieces of rows are left out: counts alone do not tell them.
MemoryQuestion question_of(const RunMemory& run, const GraphCounts& counts) {
  std::vector<PassWidths> scheduled;
  for (const EdgeOperation& operation : run.operations) scheduled.push_back(pass_widths(operation));
  return {.widths = run.widths,
          .scheduled = std::move(scheduled),
          .work = run.work,
          .beside = run.beside,
          .edge_scratch = run.edge_scratch,
          .rows_per_sum = run.rows_per_sum,
          .wire = run.route.wire,
          .by_nccl = run.route.by_nccl(),
          .get = run.route.get,
          .copied_width = run.copied_width,
          .weighted = counts.weighted,
          .symmetric = counts.symmetric,
          .gradient = run.shards.transposed,
          .loops = run.shards.one_loop_each,
          .slot_vertices = run.shards.slot_vertices,
          .wide_ids = counts.wide_ids};
}

// The memory that ranks hold during a run and after it.
struct PhasePlans {
  std::string name;  // the subject of a sentence: "a model of 2 layers ..."
  MemoryPlan host;
  MemoryPlan gpus;                        // without items: GPUs take no part
  std::vector<std::uint64_t> afterwards;  // as in RunMemory
};

PhasePlans plan_of(const NamedRun& named, const PartitionQuality& quality,
                   const MemoryQuestion& question) {
  const Route& route = named.run.route;
  const HaloStore store = route.placement().store;
  const std::vector<std::uint64_t>& afterwards = named.run.afterwards;
  if (!route.gpu) return {named.what, plan_memory(quality, question, store), {}, afterwards};
  return {named.what, plan_host_of_gpus(quality, question),
          plan_gpu_memory(quality, question, store), afterwards};
}

PhasePlans plan_of(const AnyCsr& graph, bool symmetric, const Partition& partition,
                   const PartitionQuality& quality, const NamedRun& named) {
  const Route& route = named.run.route;
  MemoryQuestion question =
      question_of(named.run, {.weighted = is_weighted(graph),
                              .symmetric = symmetric,
                              .wide_ids = std::holds_alternative<Csr64>(graph)});
  question.contiguous = partition.is_contiguous();
  if (route.gpu) question.cut_sums = cut_sums(graph, quality, partition, route);
  return plan_of(named, quality, question);
}

// Collective. GPUs' accounts need what the machine does.
void know_machine(World& world, std::span<const NamedRun> runs) {
  const auto on_gpus = [](const NamedRun& named) { return named.run.route.gpu; };
  if (std::ranges::any_of(runs, on_gpus)) agree_on_failure(world, failure_of([] { machine(); }));
}

// Returns a run as it is named where the rows that ranks read of others are not counted.
NamedRun at_least(const World& world, NamedRun named) {
  if (world.size() > 1) named.what += ", even without rows of other ranks,";
  return named;
}

// Returns the text of the refusal on this rank, or nothing.
std::string shortage(const World& world, const PhasePlans& plan) {
  Bytes during = 0, after = 0;
  for (const int rank : world.ranks_of_host()) {
    during = during + plan.host.rank_total(rank);
    if (!plan.afterwards.empty()) after = after + plan.afterwards[static_cast<std::size_t>(rank)];
  }
  const bool gpus = !plan.gpus.items.empty();
  std::string text = failure_of([&] {
    require_memory(std::max(during.value, after.value),
                   gpus ? plan.name + " on this host" : plan.name);
  });
  if (!text.empty() || !gpus) return text;
  const std::uint64_t needed = plan.gpus.rank_total(world.rank());
  return failure_of(
      [&] { require_memory(needed, plan.name + " on a GPU", gpu_free_memory(needed)); });
}

// Collective. Returns what `find` finds; if one rank cannot, all throw.
template <class Find>
auto found_on_all(World& world, const Find& find) {
  decltype(find()) found;
  on_all_or_none(world, [&] { found = find(); });
  return found;
}

}  // namespace

EdgeOffset own_edges(const AnyCsr& any, const Partition& partition, int part) {
  if (partition.is_whole()) return edge_count(any);
  return std::visit(
      [&](const auto& graph) {
        EdgeOffset edges = 0;
        for (std::uint64_t r = 0; r < partition.size(part); ++r)
          edges += graph.degree(partition.vertex(part, r));
        return edges;
      },
      any);
}

MemoryPlan plan_run(const AnyCsr& graph, bool symmetric, const Partition& partition,
                    const RunMemory& run) {
  PhasePlans plan =
      plan_of(graph, symmetric, partition, measure_partition(graph, partition), {{}, run});
  return std::move(run.route.gpu ? plan.gpus : plan.host);
}

std::vector<std::string> refusals_of(World& world, const AnyCsr& graph, bool symmetric,
                                     const Partition& partition, std::span<const NamedRun> runs) {
  know_machine(world, runs);
  give_back_freed_memory();
  const auto refusal = [&](const PartitionQuality& quality, const NamedRun& named) {
    return first_failure(world, found_on_all(world, [&] {
                           return shortage(world,
                                           plan_of(graph, symmetric, partition, quality, named));
                         }));
  };
  const auto refusals = [&](const PartitionQuality& quality) {
    std::vector<std::string> texts;
    for (const NamedRun& named : runs) texts.push_back(refusal(quality, named));
    return texts;
  };
  const auto fits = [](const std::string& text) { return text.empty(); };
  const PartitionQuality least = found_on_all(world, [&] { return least_of(graph, partition); });
  std::vector<std::string> texts = refusals(most_of(least, partition, edge_count(graph)));
  if (std::ranges::all_of(texts, fits)) return texts;
  for (std::size_t i = 0; i < texts.size(); ++i)
    texts[i] = refusal(least, at_least(world, runs[i]));
  if (std::ranges::none_of(texts, fits)) return texts;
  return refusals(found_on_all(world, [&] { return measure_partition(graph, partition); }));
}

// Some rank has at least an even share of the vertices, but perhaps few edges. On the host, where
// ranks share the memory, all edges count.
std::vector<std::string> refusals_by_counts(World& world, const GraphCounts& counts,
                                            std::span<const NamedRun> runs) {
  know_machine(world, runs);
  give_back_freed_memory();
  const auto ranks = static_cast<std::uint64_t>(world.size());
  std::vector<std::string> texts;
  for (const NamedRun& named : runs) {
    const std::uint64_t edges = named.run.route.gpu ? 0 : counts.edges / ranks;
    const PartitionQuality even{
        std::vector<PartQuality>(ranks, {.vertices = counts.vertices / ranks, .edges = edges})};
    const std::string text = found_on_all(world, [&] {
      return shortage(world, plan_of(at_least(world, named), even, question_of(named.run, counts)));
    });
    const bool fits = largest_of_all(world, text.empty() ? 1 : 0) > 0 || !world.one_host();
    texts.push_back(fits ? "" : first_failure(world, text));
  }
  return texts;
}

void require_run_fits(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
                      const RunMemory& run, const std::string& what) {
  const NamedRun named{what, run};
  const std::string text =
      refusals_of(world, graph, symmetric, partition, std::span(&named, 1)).front();
  require_on_all<DoesNotFitError>(text.empty(), "{}", text);
}

}  // namespace plait
