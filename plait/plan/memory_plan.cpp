#include "plait/plan/memory_plan.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/ids.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/plan/halo_schedule.h"

namespace plait {
namespace {

// A plan under way: items with an entry a rank.
class Items {
 public:
  explicit Items(const PartitionQuality& quality) : quality_(quality) {}

  template <class OfPart>
  void add(const char* name, OfPart bytes) {
    MemoryItem item{name, {}};
    for (const PartQuality& part : quality_.parts) item.bytes.push_back(Bytes(bytes(part)).value);
    plan_.items.push_back(std::move(item));
  }
  void add_training(const MemoryQuestion& q, std::uint64_t vertices) {
    if (q.feature_floats > 0)
      add("input features", [&](const PartQuality& part) {
        return vertices == 0
                   ? 0
                   : static_cast<std::uint64_t>(static_cast<unsigned __int128>(q.feature_floats) *
                                                sizeof(float) * part.vertices / vertices);
      });
    if (q.activations > 0)
      add("activations and their gradients", [&](const PartQuality& part) {
        return Bytes(part.vertices) * q.activations * 2 * sizeof(float);
      });
  }
  MemoryPlan take() { return std::move(plan_); }

 private:
  const PartitionQuality& quality_;
  MemoryPlan plan_;
};

std::uint64_t vertices_of(const PartitionQuality& quality) {
  std::uint64_t vertices = 0;
  for (const PartQuality& part : quality.parts) vertices += part.vertices;
  return vertices;
}

// Bytes of an edge as it is before it has a slot.
std::uint64_t neighbour_bytes(const MemoryQuestion& q) {
  return (q.wide_ids ? sizeof(std::uint64_t) : sizeof(std::uint32_t)) +
         (q.weighted ? sizeof(float) : 0);
}

// Bytes of an edge of a shard.
std::uint64_t edge_bytes(const MemoryQuestion& q) {
  return sizeof(Slot) + (q.weighted ? sizeof(float) : 0);
}

}  // namespace

std::uint64_t MemoryPlan::rank_total(int rank) const {
  Bytes sum = 0;
  for (const MemoryItem& item : items) sum = sum + item.bytes[static_cast<std::size_t>(rank)];
  return sum.value;
}

std::uint64_t MemoryPlan::largest_rank() const {
  std::uint64_t most = 0;
  const auto ranks = items.empty() ? 0 : static_cast<int>(items.front().bytes.size());
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, rank_total(rank));
  return most;
}

std::uint64_t MemoryPlan::total() const {
  Bytes sum = 0;
  for (const MemoryItem& item : items)
    for (const std::uint64_t bytes : item.bytes) sum = sum + bytes;
  return sum.value;
}

MemoryPlan plan_memory(const PartitionQuality& quality, const MemoryQuestion& q) {
  const std::uint64_t vertices = vertices_of(quality);
  std::uint64_t most_slots = 0;
  const auto halo = [&](const PartQuality& part) {
    return q.replicate ? vertices - part.vertices : part.halo_rows;
  };
  for (const PartQuality& part : quality.parts)
    most_slots = std::max(most_slots, part.vertices + halo(part));

  Items items(quality);
  const auto shard = [&](const PartQuality& part) {
    return (2 * part.vertices + 1) * sizeof(EdgeOffset) + part.edges * edge_bytes(q) +
           halo(part) * 2 * sizeof(std::uint32_t);
  };
  items.add("shard (offsets, slots, weights, halo)", shard);
  if (q.gradient && !q.symmetric) items.add("shard of the transposed graph", shard);
  // Every rank's part of the heap has the shape of the largest.
  items.add("rows in the symmetric heap (own, halo)",
            [&](const PartQuality&) { return Bytes(most_slots) * q.width * sizeof(float); });
  items.add_training(q, vertices);
  if (!q.contiguous)
    items.add("owner and row of every vertex", [&](const PartQuality&) {
      return vertices * (2 * sizeof(std::uint32_t) + sizeof(std::uint64_t));
    });
  items.add("while setting up", [&](const PartQuality& part) {
    return vertices * sizeof(Slot) + part.edges * neighbour_bytes(q);
  });
  return items.take();
}

namespace {

// What a part holds on its GPU.
struct GpuPart {
  std::uint64_t halo = 0;    // rows that are brought
  std::uint64_t edges = 0;   // of the shard
  std::uint64_t listed = 0;  // rows in lists of what is read, and of what is to be sent
};

GpuPart gpu_part(const PartQuality& part, GpuHalo halo, std::uint64_t vertices) {
  switch (halo) {
    case GpuHalo::none:
      return {0, part.edges, 0};
    case GpuHalo::complete:
      return {vertices - part.vertices, part.edges, 0};
    case GpuHalo::sums:
      return {part.summed.rows, part.summed.kept_edges,
              part.summed.listed_rows + part.summed.packed_rows};
    case GpuHalo::dense:
    case GpuHalo::packed:
    case GpuHalo::paged:
      break;
  }
  return {part.dense_rows, part.edges, part.listed_rows + part.packed_rows};
}

constexpr std::uint64_t kGetGroup = 16;  // edges

// Rows that are not cut. `row_bytes`: of x.
std::uint64_t neighbour_groups(const PartQuality& part, const GpuPart& on_gpu, GpuHalo halo,
                               std::uint64_t row_bytes) {
  if (halo == GpuHalo::none) return part.vertices + part.edges / kGetGroup;
  if (halo != GpuHalo::dense && halo != GpuHalo::sums) return part.vertices;
  const std::uint64_t local = part.edges - part.remote_edges, remote = on_gpu.edges - local;
  const auto cuts = halo_cuts({part.vertices, on_gpu.halo, local, remote}, {row_bytes, row_bytes});
  const std::uint64_t for_others = halo == GpuHalo::sums ? part.summed.sums : 0;
  return part.vertices + cuts.size() * std::min(part.vertices, remote) + for_others;
}

// Beside what stays: the slots of all vertices and the edges as they came; or the shard as it was
// before blocks of it became sums, with what their owners are to sum, which is a piece of it.
std::uint64_t placing_bytes(const PartQuality& part, const MemoryQuestion& q, GpuHalo halo,
                            std::uint64_t vertices) {
  constexpr std::uint64_t kRowCounts = 24;
  const std::uint64_t slots = vertices * (sizeof(Slot) + 1) + part.edges * neighbour_bytes(q);
  if (halo != GpuHalo::sums) return slots;
  return std::max(slots, part.edges * edge_bytes(q) +
                             part.vertices * (kRowCounts + sizeof(EdgeOffset)) +
                             part.summed.rows * (edge_bytes(q) + sizeof(EdgeOffset)));
}

}  // namespace

MemoryPlan plan_gpu_memory(const PartitionQuality& quality, const MemoryQuestion& q, GpuHalo halo) {
  constexpr std::uint64_t kGroup = 16, kMiB = std::uint64_t{1} << 20;
  const std::uint64_t vertices = vertices_of(quality), ranks = quality.parts.size();
  const auto on_gpu = [&](const PartQuality& part) { return gpu_part(part, halo, vertices); };
  const auto rows_of = [&](Bytes rows) { return rows * q.width * sizeof(float); };
  const bool get = halo == GpuHalo::none;
  std::uint64_t most_slots = 0;
  for (const PartQuality& part : quality.parts)
    most_slots = std::max(most_slots, part.vertices + on_gpu(part).halo);
  const std::uint64_t directions = q.gradient && !q.symmetric ? 2 : 1;
  // Of an absurd width the schedule does not matter.
  const std::uint64_t row_bytes = std::min(q.width, std::uint64_t{1} << 20) * sizeof(float);

  Items items(quality);
  items.add("shard (offsets, slots, weights, clusters)", [&](const PartQuality& part) {
    return directions *
           ((part.vertices + 1) * sizeof(EdgeOffset) + on_gpu(part).edges * edge_bytes(q) +
            part.vertices * sizeof(std::uint32_t));
  });
  items.add("neighbour groups", [&](const PartQuality& part) {
    return directions * neighbour_groups(part, on_gpu(part), halo, row_bytes) * kGroup;
  });
  if (get)
    items.add("sums of neighbour groups", [&](const PartQuality& part) {
      // Beyond 8 GiB they are added by atomics.
      const Bytes bytes = rows_of(part.vertices + part.edges / kGetGroup);
      return bytes.value > 8192 * kMiB ? Bytes(0) : Bytes(directions) * bytes;
    });
  else if (halo != GpuHalo::complete)
    items.add("halo lists (read, and to send)", [&](const PartQuality& part) {
      return directions * on_gpu(part).listed * sizeof(std::uint32_t);
    });
  // Every rank's part of the heap has the shape of the largest.
  if (halo == GpuHalo::paged)
    items.add("rows in managed memory (own, halo)",
              [&](const PartQuality& part) { return rows_of(part.vertices + on_gpu(part).halo); });
  else
    items.add(get ? "rows in the symmetric heap (own)" : "rows in the symmetric heap (own, halo)",
              [&](const PartQuality&) { return rows_of(most_slots); });
  if (halo == GpuHalo::packed)
    items.add("rows packed to send",
              [&](const PartQuality& part) { return rows_of(part.packed_rows) * directions; });
  if (halo == GpuHalo::sums)
    items.add("sums for other ranks, and what is summed", [&](const PartQuality& part) {
      const SummedHalo& s = part.summed;
      return (rows_of(s.sums) + s.summed_edges * edge_bytes(q) +
              (s.sums + ranks) * sizeof(EdgeOffset)) *
             directions;
    });
  items.add("signals and sums over ranks", [&](const PartQuality&) { return ranks * kMiB; });
  if (q.activations == 0)
    items.add("x and y", [&](const PartQuality& part) { return rows_of(2 * part.vertices); });
  items.add_training(q, vertices);
  items.add("while placing",
            [&](const PartQuality& part) { return placing_bytes(part, q, halo, vertices); });
  return items.take();
}

void require_fit_on_gpus(const MemoryPlan& plan, const std::vector<std::uint64_t>& free) {
  for (std::size_t rank = 0; rank < free.size(); ++rank) {
    const std::uint64_t needed = plan.rank_total(static_cast<int>(rank));
    require<DoesNotFitError>(
        needed <= free[rank],
        "rank {} needs {} on its GPU, but only {} is free; use a narrower width, another "
        "partition or strategy, or more GPUs",
        rank, format_bytes(needed), format_bytes(free[rank]));
  }
}

void require_fit(const MemoryPlan& plan, std::uint64_t available) {
  require<DoesNotFitError>(
      plan.total() <= available,
      "the run needs {} on this machine (the largest rank {}), but only {} is free; use a narrower "
      "width, another partition, or more machines",
      format_bytes(plan.total()), format_bytes(plan.largest_rank()), format_bytes(available));
}

}  // namespace plait
