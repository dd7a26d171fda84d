// Four passes mark the places that edges read, scan the marks, number the rows that are brought in,
// and write each row's slots, turned round so that they ascend, or in the order of the graph.
// Bytes: edges x (V + V + slot), places x 9.
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/base/lower_bound.h"
#include "plait/partition/quality.h"
#include "plait/placement/arrival.h"
#include "plait/placement/cuda/shard.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr int kMostRanks = 64;

unsigned blocks_for(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

__device__ std::uint64_t thread_number() {
  return blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
}

template <class V>
__global__ void mark_read(const V* neighbours, EdgeOffset edges, std::uint64_t own_begin,
                          std::uint64_t own_end, std::uint8_t* marks) {
  const EdgeOffset e = thread_number();
  if (e >= edges) return;
  const V v = neighbours[e];
  if (v < own_begin || v >= own_end) marks[v] = 1;
}

struct Count {
  __host__ __device__ std::uint32_t operator()(std::uint8_t mark) const { return mark; }
};

// The numbers that turn the places of each rank into slots.
struct Numbering {
  std::uint64_t starts[kMostRanks + 1];
  std::uint64_t slot[kMostRanks];    // of the rank's first place
  std::uint32_t before[kMostRanks];  // marks before its first place
  bool whole[kMostRanks];
  int ranks;

  __device__ int owner(std::uint64_t place) const {
    int p = 0;
    while (place >= starts[p + 1]) ++p;
    return p;
  }
};

// marks_before: in, for each place, the marks before it; out, its slot.
__global__ void number_places(std::uint32_t* marks_before, std::uint64_t places,
                              const __grid_constant__ Numbering n) {
  const std::uint64_t place = thread_number();
  if (place >= places) return;
  const int p = n.owner(place);
  const std::uint64_t row = n.whole[p] ? place - n.starts[p] : marks_before[place] - n.before[p];
  marks_before[place] = static_cast<std::uint32_t>(n.slot[p] + row);
}

// The marked rows of one rank. slots[place] is the slot of the place.
__global__ void list_rows(const std::uint8_t* marks, const Slot* slots, std::uint64_t begin,
                          std::uint64_t end, std::uint64_t first_slot, std::uint32_t* rows) {
  const std::uint64_t place = begin + thread_number();
  if (place < end && marks[place] != 0)
    rows[slots[place] - first_slot] = static_cast<std::uint32_t>(place - begin);
}

// One warp per row, whose edges keep their order.
template <class V>
__global__ void write_slots_as_given(const EdgeOffset* offsets, const V* neighbours,
                                     std::uint64_t rows, std::uint64_t own_begin,
                                     std::uint64_t own_end, const Slot* slot_of, Slot* slots,
                                     unsigned long long* local_edges) {
  const std::uint64_t row = thread_number() / kWarp;
  if (row >= rows) return;
  unsigned long long local = 0;
  for (EdgeOffset k = offsets[row] + threadIdx.x % kWarp; k < offsets[row + 1]; k += kWarp) {
    const V place = neighbours[k];
    slots[k] = slot_of[place];
    if (place >= own_begin && place < own_end) ++local;
  }
  if (local > 0) atomicAdd(local_edges, local);
}

// One warp per row: edges before the first own place go to the end.
template <class V>
__global__ void write_slots(const EdgeOffset* offsets, const V* neighbours, const float* weights,
                            std::uint64_t rows, std::uint64_t own_begin, std::uint64_t own_end,
                            const Slot* slot_of, Slot* slots, float* new_weights,
                            unsigned long long* local_edges) {
  const std::uint64_t row = thread_number() / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= rows) return;
  const EdgeOffset begin = offsets[row], end = offsets[row + 1];
  const EdgeOffset first = lower_bound(neighbours, begin, end, own_begin);
  if (lane == 0) {
    const EdgeOffset last = lower_bound(neighbours, first, end, own_end);
    if (last > first) atomicAdd(local_edges, static_cast<unsigned long long>(last - first));
  }
  for (EdgeOffset k = begin + lane; k < end; k += kWarp) {
    const EdgeOffset from = k + (first - begin) < end ? k + (first - begin) : k - (end - first);
    slots[k] = slot_of[neighbours[from]];
    if (weights != nullptr) new_weights[k] = weights[from];
  }
}

__global__ void find_bounds(const EdgeOffset* offsets, const Slot* slots, std::uint64_t rows,
                            std::uint64_t slot, EdgeOffset* bounds) {
  const std::uint64_t row = thread_number();
  if (row < rows) bounds[row] = lower_bound(slots, offsets[row], offsets[row + 1], slot);
}

}  // namespace

template <VertexId V>
DeviceShard make_device_shard(DeviceRowsCsr<V> rows, const std::vector<std::uint64_t>& starts,
                              int rank, const DeviceShardOptions& options, cudaStream_t stream) {
  const HaloKind kind = options.halo;
  const auto ranks = static_cast<int>(starts.size()) - 1;
  require(ranks <= kMostRanks, "{} ranks are more than {}", ranks, kMostRanks);
  const auto at = [&](int r) { return starts[static_cast<std::size_t>(r)]; };
  const std::uint64_t places = starts.back();
  require<DoesNotFitError>(places >> 32 == 0,
                           "{} vertices are more than the 2^32 that slots can number", places);
  DeviceShard shard;
  shard.rank = rank, shard.ranks = ranks, shard.own = at(rank + 1) - at(rank);
  const EdgeOffset edges = rows.neighbours.size();

  DeviceArray<std::uint8_t> marks(places + 1);
  DeviceArray<std::uint32_t> slot_of(places + 1);
  check_cuda(cudaMemsetAsync(marks.data(), kind == HaloKind::complete, places + 1, stream),
             "the halo");
  if (edges > 0)
    mark_read<<<blocks_for(edges), kThreads, 0, stream>>>(rows.neighbours.data(), edges, at(rank),
                                                          at(rank + 1), marks.data());
  check_cuda(cudaMemsetAsync(marks.data() + at(rank), 0, shard.own, stream), "the halo");
  const auto counts = thrust::make_transform_iterator(marks.data(), Count{});
  with_scratch("the halo", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, slot_of.data(), places + 1,
                                         stream);
  });
  Numbering numbering{};
  numbering.ranks = ranks;
  std::vector<std::uint32_t> before(starts.size());
  for (int p = 0; p <= ranks; ++p) {
    numbering.starts[p] = at(p);
    check_cuda(cudaMemcpyAsync(&before[static_cast<std::size_t>(p)], slot_of.data() + at(p),
                               sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream),
               "the halo");
  }
  check_cuda(cudaStreamSynchronize(stream), "the halo");

  numbering.whole[rank] = true;
  std::uint64_t next = shard.own;
  for (int turn = 1; turn < ranks; ++turn) {
    const int p = sender_in_turn(rank, turn, ranks);
    const std::uint64_t size = at(p + 1) - at(p);
    std::uint64_t read =
        before[static_cast<std::size_t>(p) + 1] - before[static_cast<std::size_t>(p)];
    const bool whole = read == size || (kind == HaloKind::dense && reads_most(read, size));
    if (whole) read = size;
    shard.halo.push_back({p, next, read, whole, {}});
    numbering.slot[p] = next;
    numbering.before[p] = before[static_cast<std::size_t>(p)];
    numbering.whole[p] = whole;
    next += read;
  }
  if (places > 0)
    number_places<<<blocks_for(places), kThreads, 0, stream>>>(slot_of.data(), places, numbering);
  for (HaloBlock& block : shard.halo) {
    if (block.whole || block.rows == 0) continue;
    block.row = DeviceArray<std::uint32_t>(block.rows);
    const std::uint64_t begin = at(block.owner), end = at(block.owner + 1);
    list_rows<<<blocks_for(end - begin), kThreads, 0, stream>>>(marks.data(), slot_of.data(), begin,
                                                                end, block.begin, block.row.data());
  }

  shard.slots = DeviceArray<Slot>(edges);
  const bool as_given = options.order == EdgeOrder::as_given;
  shard.weights = as_given ? std::move(rows.weights) : DeviceArray<float>(rows.weights.size());
  DeviceArray<unsigned long long> local(1);
  check_cuda(cudaMemsetAsync(local.data(), 0, sizeof(unsigned long long), stream), "the shard");
  if (edges > 0 && as_given)
    write_slots_as_given<<<blocks_for(shard.own * kWarp), kThreads, 0, stream>>>(
        rows.offsets.data(), rows.neighbours.data(), shard.own, at(rank), at(rank + 1),
        slot_of.data(), shard.slots.data(), local.data());
  else if (edges > 0)
    write_slots<<<blocks_for(shard.own * kWarp), kThreads, 0, stream>>>(
        rows.offsets.data(), rows.neighbours.data(),
        rows.weights.size() > 0 ? rows.weights.data() : nullptr, shard.own, at(rank), at(rank + 1),
        slot_of.data(), shard.slots.data(), shard.weights.data(), local.data());
  check_cuda(cudaGetLastError(), "the shard");
  check_cuda(cudaStreamSynchronize(stream), "the shard");
  shard.local_edges = local.to_host()[0];
  shard.offsets = std::move(rows.offsets);
  return shard;
}

DeviceArray<EdgeOffset> edges_from_slot(const DeviceShard& shard, std::uint64_t slot,
                                        cudaStream_t stream) {
  DeviceArray<EdgeOffset> bounds(shard.own);
  if (shard.own > 0)
    find_bounds<<<blocks_for(shard.own), kThreads, 0, stream>>>(
        shard.offsets.data(), shard.slots.data(), shard.own, slot, bounds.data());
  check_cuda(cudaGetLastError(), "the shard");
  return bounds;
}

DeviceArray<std::uint64_t> vertices_of_slots(const DeviceShard& shard, const Partition& partition) {
  std::vector<std::uint64_t> vertices(shard.slot_count());
  for (std::uint64_t i = 0; i < shard.own; ++i) vertices[i] = partition.number(shard.rank, i);
  for (const HaloBlock& block : shard.halo) {
    const std::vector<std::uint32_t> rows = block.row.to_host();
    for (std::uint64_t i = 0; i < block.rows; ++i)
      vertices[block.begin + i] = partition.number(block.owner, block.whole ? i : rows[i]);
  }
  return DeviceArray<std::uint64_t>(std::span<const std::uint64_t>(vertices));
}

template DeviceShard make_device_shard(DeviceRowsCsr<std::uint32_t>,
                                       const std::vector<std::uint64_t>&, int,
                                       const DeviceShardOptions&, cudaStream_t);
template DeviceShard make_device_shard(DeviceRowsCsr<std::uint64_t>,
                                       const std::vector<std::uint64_t>&, int,
                                       const DeviceShardOptions&, cudaStream_t);

}  // namespace plait
