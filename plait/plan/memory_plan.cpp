#include "plait/plan/memory_plan.h"

#include <algorithm>
#include <set>

#include "plait/base/error.h"
#include "plait/base/ids.h"
#include "plait/base/memory.h"
#include "plait/base/row_stride.h"
#include "plait/base/saturating.h"
#include "plait/machine/machine.h"
#include "plait/plan/halo_schedule.h"
#include "plait/plan/nccl_memory.h"

namespace plait {
namespace {

// A plan in the making: items with one entry per rank.
class Items {
 public:
  explicit Items(const PartitionQuality& quality) : quality_(quality) {}

  template <class OfPart>
  void add(const char* name, OfPart bytes) {
    MemoryItem item{name, {}};
    for (const PartQuality& part : quality_.parts) item.bytes.push_back(Bytes(bytes(part)).value);
    plan_.items.push_back(std::move(item));
  }
  // Adds the arrays that work holds; `rows`: bytes of x and y, if the work is one aggregation.
  template <class OfPart>
  void add_work(const MemoryQuestion& q, OfPart rows) {
    if (q.work.empty()) return add("x and y", rows);
    add("features, weights, gradients and moments",
        [&](const PartQuality& part) { return work_of(q, part).kept; });
    add("activations and their gradients", [&](const PartQuality& part) {
      const WorkBytes work = work_of(q, part);
      return work.most - std::min(work.kept, work.most);
    });
  }
  // `placing`: bytes taken beside arrays that stay; `after`: bytes taken only when placing has
  // ended.
  template <class OfPlacing, class OfAfter>
  void add_placing(OfPlacing placing, OfAfter after) {
    add("more while placing the graph", [&](const PartQuality& part) {
      const std::uint64_t now = Bytes(placing(part)).value, later = Bytes(after(part)).value;
      return now > later ? now - later : 0;
    });
  }
  template <class T>
  T of_rank(const std::vector<T>& by_rank, const PartQuality& part) const {
    const auto rank = static_cast<std::size_t>(&part - quality_.parts.data());
    return rank < by_rank.size() ? by_rank[rank] : T{};
  }
  WorkBytes work_of(const MemoryQuestion& q, const PartQuality& part) const {
    return of_rank(q.work, part);
  }
  // Adds what the run does not know of.
  void add_beside(const MemoryQuestion& q) {
    if (!q.beside.empty())
      add("kept beside the run", [&](const PartQuality& part) { return of_rank(q.beside, part); });
  }
  // Adds the arrays of a partition that is no ranges.
  void add_owners(const MemoryQuestion& q, std::uint64_t vertices) {
    if (!q.contiguous)
      add("owner and row of every vertex", [&](const PartQuality&) {
        return vertices * (2 * sizeof(std::uint32_t) + sizeof(std::uint64_t));
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

std::uint64_t MemoryQuestion::width() const {
  return widths.empty() ? 0 : std::ranges::max(widths);
}

namespace {

// Edges of a shard.
std::uint64_t shard_edges(const PartQuality& part, const MemoryQuestion& q) {
  return part.edges + (q.loops ? part.vertices : 0);
}

std::uint64_t directions(const MemoryQuestion& q) { return q.gradient && !q.symmetric ? 2 : 1; }

// Returns the bytes of rows of the type as they stand in slots.
Bytes bytes_of_rows(Bytes rows, std::uint64_t width, DType type = DType::f32) {
  // An absurd width must not wrap round as it is padded.
  return rows * (width >> 62 != 0 ? width : row_stride(width, type)) * size_of(type);
}

// Returns the bytes of the caller's own rows of x and y, which have no gaps.
Bytes x_and_y(const PartQuality& part, const MemoryQuestion& q) {
  return Bytes(2 * part.vertices) * q.width() * sizeof(float);
}

}  // namespace

MemoryPlan plan_memory(const PartitionQuality& quality, const MemoryQuestion& q, HaloStore store) {
  const std::uint64_t vertices = vertices_of(quality);
  const auto halo = [&](const PartQuality& part) {
    return store == HaloStore::complete ? vertices - part.vertices : part.halo_rows;
  };
  std::uint64_t most_slots = 0;
  for (const PartQuality& part : quality.parts)
    most_slots = std::max(most_slots, part.vertices + (store == HaloStore::none ? 0 : halo(part)));
  // One rank reads rows where they stand unless it scales them or leaves gaps between them.
  const bool alone = quality.parts.size() == 1;
  const Bytes rows =
      bytes_of_rows(most_slots, alone ? q.copied_width.value_or(q.width()) : q.width());
  // Every rank's part of the heap has the shape of the largest.
  const auto heap = [&](const PartQuality&) { return rows; };

  Items items(quality);
  const auto shard = [&](const PartQuality& part) {
    const std::uint64_t slots = part.vertices + halo(part);
    return (2 * part.vertices + 1) * sizeof(EdgeOffset) + shard_edges(part, q) * edge_bytes(q) +
           halo(part) * 2 * sizeof(std::uint32_t) +
           (q.slot_vertices ? slots * sizeof(std::uint64_t) : 0);
  };
  items.add("shard (offsets, slots, weights, halo)", shard);
  if (directions(q) == 2) items.add("shard of the transposed graph", shard);
  items.add("rows in the symmetric heap (own, halo)", heap);
  items.add_work(q, [&](const PartQuality& part) { return x_and_y(part, q); });
  items.add_beside(q);
  items.add_owners(q, vertices);
  // The rows of both directions as they were cut out, and the slots of all vertices.
  items.add_placing(
      [&](const PartQuality& part) {
        return vertices * sizeof(Slot) + shard_edges(part, q) * neighbour_bytes(q) * directions(q);
      },
      [&](const PartQuality& part) {
        const WorkBytes work = items.work_of(q, part);
        return rows + (q.work.empty() ? bytes_of_rows(2 * part.vertices, q.width())
                                      : Bytes(work.most - std::min(work.kept, work.most)));
      });
  return items.take();
}

namespace {

// The counts of a part on its GPU.
struct GpuPart {
  std::uint64_t halo = 0;    // rows that are brought
  std::uint64_t edges = 0;   // of the shard
  std::uint64_t listed = 0;  // rows in lists of rows to read and of rows to send
};

GpuPart gpu_part(const PartQuality& part, const MemoryQuestion& q, HaloStore halo,
                 std::uint64_t vertices) {
  const std::uint64_t edges = shard_edges(part, q);
  switch (halo) {
    case HaloStore::none:
      return {0, edges, 0};
    case HaloStore::complete:
      return {vertices - part.vertices, edges, 0};
    case HaloStore::sums:
      return {part.summed.rows, part.summed.kept_edges + edges - part.edges,
              part.summed.listed_rows + part.summed.packed_rows};
    default:
      return {part.dense_rows, edges, part.listed_rows + part.packed_rows};
  }
}

// Returns the widths that decide the schedule of passes.
std::vector<PassWidths> scheduled_of(const MemoryQuestion& q) {
  if (!q.scheduled.empty()) return q.scheduled;
  std::vector<PassWidths> sums;
  for (const std::uint64_t width : q.widths) {
    // The schedule of an absurd width does not matter.
    const std::uint64_t scheduled = std::min(width, std::uint64_t{1} << 20);
    sums.push_back({row_bytes(scheduled), row_bytes(scheduled, q.wire)});
  }
  return sums;
}

// Returns the number of groups of rows that are not cut. Passes with the same cuts share theirs.
// One pass cannot read both own rows and a halo of another type.
Bytes neighbour_groups(const PartQuality& part, const GpuPart& on_gpu, const MemoryQuestion& q,
                       HaloStore halo) {
  if (halo == HaloStore::none)  // groups of a row that are not full: one of either kind
    return part.vertices + std::min(part.vertices, part.remote_edges) +
           on_gpu.edges / q.get.least_neighbours();
  const bool apart = q.wire != DType::f32;
  if (halo != HaloStore::dense && halo != HaloStore::sums)
    return part.vertices + (apart ? std::min(part.vertices, part.remote_edges) : 0);
  const std::uint64_t local = part.edges - part.remote_edges,
                      remote = on_gpu.edges - std::min(on_gpu.edges, local);
  Bytes groups = halo == HaloStore::sums ? part.summed.sums : 0;
  std::set<std::vector<std::uint64_t>> schedules;
  for (const PassWidths& widths : scheduled_of(q)) {
    std::vector<std::uint64_t> cuts =
        halo_cuts({part.vertices, on_gpu.halo, local, remote}, widths);
    if (cuts.empty() && apart && on_gpu.halo > 0) cuts = {on_gpu.halo};
    schedules.insert(std::move(cuts));
  }
  for (const std::vector<std::uint64_t>& cuts : schedules)
    groups = groups + part.vertices + cuts.size() * std::min(part.vertices, remote);
  return groups;
}

// Returns the own rows that NCCL sends out of a buffer: rows that others list, and if rows are
// converted, all other rows.
std::uint64_t packed_rows(const PartQuality& part, const MemoryQuestion& q, HaloStore halo,
                          std::uint64_t ranks) {
  if (halo == HaloStore::packed)
    return part.packed_rows + (q.wire == DType::f32 ? 0 : part.whole_rows);
  return halo == HaloStore::complete && q.wire != DType::f32 ? part.vertices * (ranks - 1) : 0;
}

// Returns the bytes beside arrays that stay: the slots of all vertices and the edges as they came;
// or the shard as it was before blocks of it became sums, with the piece of it that owners are to
// sum.
std::uint64_t placing_bytes(const PartQuality& part, const MemoryQuestion& q, HaloStore halo,
                            std::uint64_t vertices) {
  constexpr std::uint64_t kRowCounts = 24;
  const std::uint64_t slots =
      vertices * (sizeof(Slot) + 1) + shard_edges(part, q) * neighbour_bytes(q);
  if (halo != HaloStore::sums) return slots;
  return std::max(slots, part.edges * edge_bytes(q) +
                             part.vertices * (kRowCounts + sizeof(EdgeOffset)) +
                             part.summed.rows * (edge_bytes(q) + sizeof(EdgeOffset)));
}

}  // namespace

MemoryPlan plan_gpu_memory(const PartitionQuality& quality, const MemoryQuestion& q,
                           HaloStore halo) {
  constexpr std::uint64_t kGroup = 16, kMiB = std::uint64_t{1} << 20;
  // The memory that CUDA and libtorch take beside the arrays, measured (docs/performance.md):
  // kernels that are loaded when they are first used, recorded steps, the workspace of matrix
  // products.
  constexpr std::uint64_t kPlaced = 32 * kMiB, kTrained = 96 * kMiB;
  const std::uint64_t vertices = vertices_of(quality), ranks = quality.parts.size();
  const auto on_gpu = [&](const PartQuality& part) { return gpu_part(part, q, halo, vertices); };
  const auto rows_of = [&](Bytes rows) { return bytes_of_rows(rows, q.width()); };
  const bool get = halo == HaloStore::none;
  std::uint64_t most_slots = 0;
  for (const PartQuality& part : quality.parts)
    most_slots = std::max(most_slots, part.vertices + on_gpu(part).halo);
  const std::uint64_t both = directions(q);

  Items items(quality);
  items.add("shard (offsets, slots, weights, clusters)", [&](const PartQuality& part) {
    const std::uint64_t slots = part.vertices + on_gpu(part).halo;
    return both * ((part.vertices + 1) * sizeof(EdgeOffset) + on_gpu(part).edges * edge_bytes(q) +
                   part.vertices * sizeof(std::uint32_t) +
                   (q.slot_vertices ? slots * sizeof(std::uint64_t) : 0));
  });
  items.add("neighbour groups", [&](const PartQuality& part) {
    return Bytes(both) * neighbour_groups(part, on_gpu(part), q, halo) * kGroup;
  });
  const auto group_sums = [&](const PartQuality& part) {
    const Bytes bytes = q.rows_per_sum * rows_of(items.of_rank(q.cut_sums, part));
    // Above this limit, get adds sums by atomics in any case.
    const bool atomic = q.get.sums == GroupSums::atomic || bytes.value > machine().get_partial_sums;
    return get && atomic ? Bytes(0) : Bytes(both) * bytes;
  };
  items.add("sums of neighbour groups", group_sums);
  if (q.edge_scratch > 0)
    items.add("scratch of operations over edges", [&](const PartQuality& part) {
      return Bytes(both) * part.vertices * q.edge_scratch * sizeof(float);
    });
  if (!get && halo != HaloStore::complete)
    items.add("halo lists (read, and to send)", [&](const PartQuality& part) {
      return both * on_gpu(part).listed * sizeof(std::uint32_t);
    });
  // Every rank's part of the heap has the shape of the largest.
  if (halo == HaloStore::paged)
    items.add("rows in managed memory (own, halo)",
              [&](const PartQuality& part) { return rows_of(part.vertices + on_gpu(part).halo); });
  else
    items.add(get ? "rows in the symmetric heap (own)" : "rows in the symmetric heap (own, halo)",
              [&](const PartQuality&) { return rows_of(most_slots); });
  if (halo == HaloStore::packed || (halo == HaloStore::complete && q.wire != DType::f32))
    items.add("rows packed to send", [&](const PartQuality& part) {
      return bytes_of_rows(packed_rows(part, q, halo, ranks), q.width(), q.wire) * both;
    });
  if (halo == HaloStore::sums)
    items.add("sums for other ranks, and their edges", [&](const PartQuality& part) {
      const SummedHalo& s = part.summed;
      return (rows_of(s.sums) + s.summed_edges * edge_bytes(q) +
              (s.sums + ranks) * sizeof(EdgeOffset)) *
             both;
    });
  items.add("signals and sums over ranks", [&](const PartQuality&) { return ranks * kMiB; });
  items.add("CUDA and its libraries",
            [&](const PartQuality&) { return q.work.empty() ? kPlaced : kTrained; });
  if (q.by_nccl && ranks > 1)
    items.add("NCCL", [&](const PartQuality&) { return nccl_memory(ranks); });
  items.add_work(q, [&](const PartQuality& part) { return x_and_y(part, q); });
  items.add_placing([&](const PartQuality& part) { return placing_bytes(part, q, halo, vertices); },
                    [&](const PartQuality& part) {
                      const WorkBytes work = items.work_of(q, part);
                      return rows_of(most_slots) + group_sums(part) +
                             (q.work.empty() ? x_and_y(part, q)
                                             : Bytes(work.most - std::min(work.kept, work.most)));
                    });
  return items.take();
}

// A rank has its rows of the graph as they were cut out, once more with loops, and where neighbours
// are numbered by owner once more. A rank that owns all vertices reads the graph's own
// arrays. Ids of own vertices, and their numbers, are lists of the features that are brought.
MemoryPlan plan_host_of_gpus(const PartitionQuality& quality, const MemoryQuestion& q) {
  Items items(quality);
  const bool whole = quality.parts.size() == 1;
  const std::uint64_t copies = (whole ? 0 : 1) + (q.loops ? 1 : 0) + (q.contiguous ? 0 : 1);
  items.add_beside(q);
  items.add_owners(q, vertices_of(quality));
  items.add("rows of the graph on their way to the GPU", [&](const PartQuality& part) {
    return Bytes(copies) * (Bytes(shard_edges(part, q)) * neighbour_bytes(q) +
                            Bytes(part.vertices + 1) * sizeof(EdgeOffset));
  });
  items.add("ids of own vertices", [&](const PartQuality& part) {
    return Bytes(2 * sizeof(std::int64_t)) * part.vertices;
  });
  return items.take();
}

bool fits_on_gpus(const MemoryPlan& plan, const std::vector<std::uint64_t>& free) {
  for (std::size_t rank = 0; rank < free.size(); ++rank)
    if (plan.rank_total(static_cast<int>(rank)) > free[rank]) return false;
  return true;
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
