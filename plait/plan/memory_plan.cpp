#include "plait/plan/memory_plan.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/ids.h"
#include "plait/base/memory.h"
#include "plait/plan/halo_schedule.h"

namespace plait {
namespace {

// Bytes that stay at the largest number there is instead of wrapping round: what was asked for may
// be absurd, and must be refused, not allowed.
struct Bytes {
  std::uint64_t value = 0;
  Bytes(std::uint64_t v) : value(v) {}  // NOLINT: a number as it is
};
Bytes operator+(Bytes a, Bytes b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a.value, b.value, &sum) ? ~std::uint64_t{0} : sum;
}
Bytes operator*(Bytes a, Bytes b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a.value, b.value, &product) ? ~std::uint64_t{0} : product;
}

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
  const std::uint64_t edge = sizeof(Slot) + (q.weighted ? sizeof(float) : 0);
  const auto shard = [&](const PartQuality& part) {
    return (2 * part.vertices + 1) * sizeof(EdgeOffset) + part.edges * edge +
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

MemoryPlan plan_gpu_memory(const PartitionQuality& quality, const MemoryQuestion& q, GpuHalo halo) {
  constexpr std::uint64_t kGroup = 16, kGetGroup = 16, kMiB = std::uint64_t{1} << 20;
  const std::uint64_t vertices = vertices_of(quality), ranks = quality.parts.size();
  const bool get = halo == GpuHalo::none;
  const auto halo_rows = [&](const PartQuality& part) {
    if (get) return std::uint64_t{0};
    return halo == GpuHalo::complete ? vertices - part.vertices : part.dense_rows;
  };
  std::uint64_t most_slots = 0;
  for (const PartQuality& part : quality.parts)
    most_slots = std::max(most_slots, part.vertices + halo_rows(part));
  const std::uint64_t directions = q.gradient && !q.symmetric ? 2 : 1;
  // Of an absurd width the schedule does not matter.
  const std::uint64_t row_bytes = std::min(q.width, std::uint64_t{1} << 20) * sizeof(float);

  Items items(quality);
  items.add("shard (offsets, slots, weights, clusters)", [&](const PartQuality& part) {
    const std::uint64_t edge = sizeof(Slot) + (q.weighted ? sizeof(float) : 0);
    return directions * ((part.vertices + 1) * sizeof(EdgeOffset) + part.edges * edge +
                         part.vertices * sizeof(std::uint32_t));
  });
  items.add("neighbour groups", [&](const PartQuality& part) {
    if (get) return directions * (part.vertices + part.edges / kGetGroup) * kGroup;
    std::uint64_t groups = part.vertices;
    if (halo == GpuHalo::dense) {
      const RankLoad load{part.vertices, part.dense_rows, part.edges - part.remote_edges,
                          part.remote_edges};
      groups += halo_cuts(load, {row_bytes, row_bytes}).size() *
                std::min(part.vertices, part.remote_edges);
    }
    return directions * groups * kGroup;
  });
  if (get)
    items.add("sums of neighbour groups", [&](const PartQuality& part) {
      // Beyond 8 GiB they are added by atomics.
      const Bytes bytes = Bytes(part.vertices + part.edges / kGetGroup) * q.width * sizeof(float);
      return bytes.value > 8192 * kMiB ? Bytes(0) : Bytes(directions) * bytes;
    });
  else if (halo != GpuHalo::complete)
    items.add("halo lists (read, and to send)", [&](const PartQuality& part) {
      return directions * (part.listed_rows + part.packed_rows) * sizeof(std::uint32_t);
    });
  // Every rank's part of the heap has the shape of the largest.
  items.add(get ? "rows in the symmetric heap (own)" : "rows in the symmetric heap (own, halo)",
            [&](const PartQuality&) { return Bytes(most_slots) * q.width * sizeof(float); });
  if (halo == GpuHalo::packed)
    items.add("rows packed to send", [&](const PartQuality& part) {
      return Bytes(part.packed_rows) * q.width * sizeof(float) * directions;
    });
  items.add("signals and sums over ranks", [&](const PartQuality&) { return ranks * kMiB; });
  if (q.activations == 0)
    items.add("x and y", [&](const PartQuality& part) {
      return Bytes(2 * part.vertices) * q.width * sizeof(float);
    });
  items.add_training(q, vertices);
  items.add("while placing", [&](const PartQuality& part) {
    return vertices * (sizeof(Slot) + 1) + part.edges * neighbour_bytes(q);
  });
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
