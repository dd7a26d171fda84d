#include "plait/table/store_memory.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/table/hot_rows.h"

namespace plait {
namespace {

StorePlan plan_for(const StoreQuestion& question, TablePlace place) {
  StoreQuestion q = question;
  q.table.place = place;
  return plan_store(q);
}

bool fits(const StorePlan& plan, const StoreQuestion& q, const FreeMemory& free) {
  if (!q.gpus) return plan.total() <= free.host;
  return plan.host <= free.host && fits_on_gpus(plan.memory, free.gpus);
}

// Tells whether a copy of the features on each GPU is small beside what is free there.
bool is_small(const StoreQuestion& q, const FreeMemory& free) {
  constexpr std::uint64_t kShare = 8;
  if (q.ranks == 1 || free.gpus.empty()) return q.ranks == 1;
  TableSettings whole = q.table;
  whole.place = TablePlace::replicated;
  return TableLayout(whole, q.ranks).part_bytes() <= std::ranges::min(free.gpus) / kShare;
}

// The sentence of a refusal: all components of the places that were tried.
[[noreturn]] void refuse(const StoreQuestion& q, const FreeMemory& free) {
  const auto bytes = [](std::uint64_t value) { return format_bytes(value); };
  const StorePlan on_host = plan_for(q, TablePlace::host);
  if (!q.gpus)
    throw DoesNotFitError(fmt::format(
        "the features need {} of this host's memory as {}, but only {} are free; use more hosts",
        bytes(on_host.total()), to_string(q.table.type), bytes(free.host)));
  const StorePlan on_gpus = plan_for(q, TablePlace::gpu);
  const std::uint64_t besides = on_host.memory.largest_rank();
  throw DoesNotFitError(fmt::format(
      "the features need {} on each of {} {} as {}, or {} of the host's memory, besides {} on each "
      "GPU (structure {}, labels {}), but only {} are free on a GPU and {} on the host; use more "
      "GPUs",
      bytes(on_gpus.memory.largest_rank() - besides), q.ranks, q.ranks == 1 ? "GPU" : "GPUs",
      to_string(q.table.type), bytes(on_host.host), bytes(besides), bytes(q.structure),
      bytes(q.labels), bytes(free.gpus.empty() ? 0 : std::ranges::min(free.gpus)),
      bytes(free.host)));
}

std::uint64_t structure_bytes(const AnyCsr& graph) {
  return std::visit(
      [](const auto& csr) {
        return csr.offsets.size() * sizeof(EdgeOffset) +
               csr.neighbours.size() * sizeof(csr.neighbours[0]) +
               csr.weights.size() * sizeof(float);
      },
      graph);
}

}  // namespace

std::uint64_t StorePlan::total() const { return (Bytes(memory.total()) + host).value; }

StoreQuestion store_question(const Dataset& dataset, TableSettings table, int ranks, bool gpus) {
  table.rows = dataset.vertices();
  if (table.width == 0) table.width = dataset.features.width;
  return {.table = table,
          .ranks = ranks,
          .gpus = gpus,
          .mapped_file = !dataset.checked.empty(),  // only arrays of a container have checksums
          .structure = structure_bytes(dataset.graph),
          .labels = dataset.labels.size() * sizeof(std::int32_t) + dataset.label_sets.size()};
}

StorePlan plan_store(const StoreQuestion& q) {
  const TableLayout layout(q.table, q.ranks);
  const std::uint64_t stride = layout.stride(), rows = q.table.rows;
  StorePlan plan;
  const auto add = [&](const char* name, std::uint64_t bytes) {
    plan.memory.items.push_back(
        {name, std::vector<std::uint64_t>(static_cast<std::size_t>(q.ranks), bytes)});
  };
  const bool shared = q.gpus && q.table.place == TablePlace::host;
  const bool in_memory = q.gpus || !q.mapped_file;  // structure and labels
  const bool mapped = q.table.place == TablePlace::mapped && q.mapped_file;
  // Every rank's part of the heap has the shape of the largest.
  if (shared)
    plan.host = (Bytes(layout.part_bytes()) * static_cast<unsigned>(layout.parts())).value;
  add(mapped ? "features (mapped from the file)" : "features",
      shared || mapped ? 0 : layout.part_bytes());
  if (q.gpus && layout.view().owner != nullptr)
    add("owner and row of every vertex", rows * 2 * sizeof(std::uint32_t));
  add(in_memory ? "labels" : "labels (mapped from the file)", in_memory ? q.labels : 0);
  const auto parts = static_cast<std::uint64_t>(q.gpus && q.shard_structure ? q.ranks : 1);
  const std::uint64_t structure = q.structure / parts + (q.structure % parts == 0 ? 0 : 1);
  add(in_memory ? "structure" : "structure (mapped from the file)", in_memory ? structure : 0);
  if (q.gpus && q.hot_rows > 0)
    add("copies of hot rows", hot_bytes(std::min(q.hot_rows, rows), rows, stride));
  return plan;
}

TablePlace choose_place(const StoreQuestion& q, const FreeMemory& free) {
  const auto fits_in = [&](TablePlace place) { return fits(plan_for(q, place), q, free); };
  if (!q.gpus) {
    if (free.mappable) return TablePlace::mapped;
    if (fits_in(TablePlace::host)) return TablePlace::host;
    refuse(q, free);
  }
  if (is_small(q, free) && fits_in(TablePlace::replicated)) return TablePlace::replicated;
  if ((free.peers || q.ranks == 1) && fits_in(TablePlace::gpu)) return TablePlace::gpu;
  for (const TablePlace place : {TablePlace::host, TablePlace::replicated})
    if (fits_in(place)) return place;
  refuse(q, free);
}

}  // namespace plait
