#include "plait/placement/shard.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"

namespace plait {
namespace {

constexpr Slot kNoSlot = std::numeric_limits<Slot>::max();

void require_slots(int rank, std::uint64_t rows) {
  require<DoesNotFitError>(rows < kNoSlot,
                           "rank {} would hold {} rows, more than the {} that slots can number; "
                           "use more ranks",
                           rank, rows, kNoSlot - 1);
}

// The slot of every vertex of the graph that is own or in the halo.
class SlotMap {
 public:
  SlotMap(const Partition& partition, int rank)
      : partition_(partition), rank_(rank), slot_(partition.vertices(), kNoSlot) {}

  bool is_own(std::uint64_t v) const { return partition_.owner(v) == rank_; }
  Slot slot(std::uint64_t v) const { return slot_[v]; }
  // Threads may mark the same vertex at once; all write the same value.
  void mark(std::uint64_t v) {
    std::atomic_ref<Slot>(slot_[v]).store(0, std::memory_order_relaxed);
  }

  // Numbers own rows and the marked rows (or all others), and returns the halo.
  Halo number(HaloKind kind) {
    std::uint64_t next = partition_.size(rank_);
    for (std::uint64_t r = 0; r < next; ++r)
      slot_[partition_.vertex(rank_, r)] = static_cast<Slot>(r);
    std::vector<std::uint32_t> owner, row;
    Halo halo;
    halo.starts.push_back(0);
    for (int part = 0; part < partition_.parts(); ++part) {
      const std::uint64_t size = part == rank_ ? 0 : partition_.size(part);
      for (std::uint64_t r = 0; r < size; ++r) {
        const std::uint64_t v = partition_.vertex(part, r);
        if (kind != HaloKind::complete && slot_[v] == kNoSlot) continue;
        slot_[v] = static_cast<Slot>(next++);
        owner.push_back(static_cast<std::uint32_t>(part));
        row.push_back(static_cast<std::uint32_t>(r));
      }
      halo.starts.push_back(row.size());
    }
    require_slots(rank_, next);
    halo.owner = std::move(owner);
    halo.row = std::move(row);
    return halo;
  }

 private:
  const Partition& partition_;
  int rank_;
  Buffer<Slot> slot_;
};

template <class Body>
void for_each_row(std::uint64_t rows, Body body) {
  parallel_blocks(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(i);
  });
}

// Returns neighbours that are rows of this rank as slots: the same memory, if they have that type.
template <VertexId V>
Array<Slot> slots_of(const Array<V>& neighbours) {
  if constexpr (std::is_same_v<V, Slot>) {
    return neighbours;
  } else {
    Buffer<Slot> slots(neighbours.size());
    std::ranges::transform(neighbours, slots.begin(), [](V v) { return static_cast<Slot>(v); });
    return slots;
  }
}

}  // namespace

EdgeOffset Shard::remote_edges() const {
  EdgeOffset sum = 0;
  for (std::uint64_t i = 0; i < own; ++i) sum += offsets[i + 1] - split[i];
  return sum;
}

template <VertexId V>
Shard make_shard(const Csr<V>& rows, const Partition& partition, int rank, HaloKind kind,
                 EdgeOrder order) {
  Shard shard{.rank = rank, .parts = partition.parts(), .own = rows.vertices()};
  if (partition.is_whole()) {  // slots are ids, and all edges are local
    require_slots(rank, shard.own);
    shard.offsets = rows.offsets;
    shard.split = rows.offsets.from(1);
    shard.slots = slots_of(rows.neighbours);
    shard.weights = rows.weights;
    shard.halo.starts = {0, 0};
    return shard;
  }
  SlotMap map(partition, rank);
  Buffer<EdgeOffset> split(shard.own);
  for_each_row(shard.own, [&](std::uint64_t i) {
    split[i] = rows.offsets[i];
    for (const V j : rows.row(i)) {
      if (map.is_own(j))
        ++split[i];
      else
        map.mark(j);
    }
  });
  shard.halo = map.number(kind);

  Buffer<Slot> slots(rows.edges());
  Buffer<float> weights(rows.weighted() ? rows.edges() : 0);
  for_each_row(shard.own, [&](std::uint64_t i) {
    EdgeOffset local = rows.offsets[i], remote = split[i];
    for (EdgeOffset e = rows.offsets[i]; e < rows.offsets[i + 1]; ++e) {
      const Slot slot = map.slot(rows.neighbours[e]);
      EdgeOffset& at = order == EdgeOrder::as_given || slot < shard.own ? local : remote;
      slots[at] = slot;
      if (rows.weighted()) weights[at] = rows.weights[e];
      ++at;
    }
  });
  shard.offsets = rows.offsets;
  shard.split = std::move(split);
  shard.slots = std::move(slots);
  shard.weights = std::move(weights);
  return shard;
}

std::vector<std::uint64_t> vertices_of_slots(const Shard& shard, const Partition& partition) {
  std::vector<std::uint64_t> vertices(shard.slot_count());
  for (std::uint64_t i = 0; i < shard.own; ++i) vertices[i] = partition.number(shard.rank, i);
  for (std::uint64_t h = 0; h < shard.halo.rows(); ++h)
    vertices[shard.own + h] =
        partition.number(static_cast<int>(shard.halo.owner[h]), shard.halo.row[h]);
  return vertices;
}

template Shard make_shard(const Csr32&, const Partition&, int, HaloKind, EdgeOrder);
template Shard make_shard(const Csr64&, const Partition&, int, HaloKind, EdgeOrder);

}  // namespace plait
