#include "plait/plan/memory_plan.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/ids.h"
#include "plait/base/memory.h"

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
  std::uint64_t vertices = 0, most_slots = 0;
  for (const PartQuality& part : quality.parts) vertices += part.vertices;
  const auto halo = [&](const PartQuality& part) {
    return q.replicate ? vertices - part.vertices : part.halo_rows;
  };
  for (const PartQuality& part : quality.parts)
    most_slots = std::max(most_slots, part.vertices + halo(part));

  MemoryPlan plan;
  const auto add = [&](const char* name, auto bytes) {
    MemoryItem item{name, {}};
    for (const PartQuality& part : quality.parts) item.bytes.push_back(Bytes(bytes(part)).value);
    plan.items.push_back(std::move(item));
  };
  const std::uint64_t edge = sizeof(Slot) + (q.weighted ? sizeof(float) : 0);
  const auto shard = [&](const PartQuality& part) {
    return (2 * part.vertices + 1) * sizeof(EdgeOffset) + part.edges * edge +
           halo(part) * 2 * sizeof(std::uint32_t);
  };
  add("shard (offsets, slots, weights, halo)", shard);
  if (q.gradient && !q.symmetric) add("shard of the transposed graph", shard);
  // Every rank's part of the heap has the shape of the largest.
  add("rows in the symmetric heap (own, halo)",
      [&](const PartQuality&) { return Bytes(most_slots) * q.width * sizeof(float); });
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
  if (!q.contiguous)
    add("owner and row of every vertex", [&](const PartQuality&) {
      return vertices * (2 * sizeof(std::uint32_t) + sizeof(std::uint64_t));
    });
  add("while setting up", [&](const PartQuality& part) {
    return vertices * sizeof(Slot) +
           part.edges * ((q.wide_ids ? sizeof(std::uint64_t) : sizeof(std::uint32_t)) +
                         (q.weighted ? sizeof(float) : 0));
  });
  return plan;
}

void require_fit(const MemoryPlan& plan, std::uint64_t available) {
  require<DoesNotFitError>(
      plan.total() <= available,
      "the run needs {} on this machine (the largest rank {}), but only {} is free; use a narrower "
      "width, another partition, or more machines",
      format_bytes(plan.total()), format_bytes(plan.largest_rank()), format_bytes(available));
}

}  // namespace plait
