// Gathers in which each distinct row crosses a link once.
//
// One kernel enters the ids of rows that would cross into a hash table of places: the first to come
// takes the slot, and others of the same id find its place there. It makes two lists: places whose
// rows are fetched, and (place, place of the same row) of the others. A gather takes the first
// list, another copies the second from the results themselves.
//
// Of n ids with d distinct ones, the table moves 32 n bytes at random through the L2 cache, which
// holds it up to 4 M ids, and clearing it 16 n at most; d rows cross, and n - d are read and
// written in this GPU's memory. At 400 bytes per row, 475 GB/s of a link and 1 M ids the table
// takes about 40 us, and a gather of all rows 880 us: fewer rows pay from a twentieth of repeated
// ids on.
#include <algorithm>
#include <bit>
#include <cub/block/block_scan.cuh>

#include "plait/base/error.h"
#include "plait/table/cuda/distinct_rows.h"
#include "plait/table/cuda/gather.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr std::uint32_t kEmpty = ~0u;

struct Lists {
  std::uint32_t* fetched;  // places
  uint2* repeated;         // (place, place of the same row)
  std::uint32_t* counts;   // of both lists
};

struct FetchedRows : WholePieces {
  Lists lists;
  __device__ std::uint64_t count(const GatherRows&) const { return lists.counts[0]; }
  __device__ std::uint64_t place(std::uint64_t i) const { return lists.fetched[i]; }
  static __device__ std::uint64_t id(const GatherRows& a, std::uint64_t, std::uint64_t place) {
    return a.ids[place];
  }
};

// The rows are those of the results, and their ids places.
struct RepeatedRows : WholePieces {
  Lists lists;
  __device__ std::uint64_t count(const GatherRows&) const { return lists.counts[1]; }
  __device__ std::uint64_t place(std::uint64_t i) const { return lists.repeated[i].x; }
  __device__ std::uint64_t id(const GatherRows&, std::uint64_t i, std::uint64_t) const {
    return lists.repeated[i].y;
  }
};

// Returns the place of the first thread that entered the same id, `i` if it is this one. A slot is
// written once, so a stale read of it is corrected by the exchange.
__device__ std::uint32_t enter(const GatherRows& a, std::uint32_t* slots, std::uint32_t mask,
                               std::uint32_t i, std::uint64_t id) {
  auto slot = static_cast<std::uint32_t>(id * 0x9E3779B97F4A7C15u >> 32) & mask;
  for (;; slot = (slot + 1) & mask) {
    std::uint32_t here = slots[slot];
    if (here == kEmpty) here = atomicCAS(slots + slot, kEmpty, i);
    if (here == kEmpty) return i;
    if (a.ids[here] == id) return here;
  }
}

__global__ void __launch_bounds__(kThreads)
    list_rows(const __grid_constant__ GatherRows a, std::uint32_t* slots, std::uint32_t mask,
              Lists lists) {
  using Scan = cub::BlockScan<unsigned, kThreads>;
  __shared__ RankTable ranks;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ std::uint32_t begins[2];
  ranks.fill(a.from);
  const std::uint32_t first = blockIdx.x * kThreads, i = first + threadIdx.x;
  const bool mine = i < a.count;
  std::uint32_t same = i;
  if (mine) {
    const std::uint64_t id = a.ids[i];
    if (crosses(a.from, place_of(a.from, ranks.starts, id))) same = enter(a, slots, mask, i, id);
  }
  unsigned before = 0, fetched = 0;
  Scan(scratch).ExclusiveSum(mine && same == i ? 1u : 0u, before, fetched);
  if (threadIdx.x == 0) {
    const auto rows = static_cast<unsigned>(min(std::uint64_t{kThreads}, a.count - first));
    begins[0] = atomicAdd(lists.counts, fetched);
    begins[1] = atomicAdd(lists.counts + 1, rows - fetched);
  }
  __syncthreads();
  if (!mine) return;
  if (same == i)
    lists.fetched[begins[0] + before] = i;
  else
    lists.repeated[begins[1] + threadIdx.x - before] = {i, same};
}

std::uint64_t slots_for(std::uint64_t ids) {
  return std::bit_ceil(std::max<std::uint64_t>(2 * ids, 2));
}

// Returns the results of a gather as the source of another one, which copies its rows.
GatherRows copies_of(const GatherRows& a) {
  GatherRows copies = a;
  copies.from = {};
  copies.from.base[0] = a.out;
  copies.from.stride = a.out_stride;
  copies.from.rows = a.count, copies.from.starts[1] = a.count;
  copies.from.ranks = 1, copies.from.own = 0;
  copies.width = a.width * unstored_size(a.type);
  copies.type = DType::raw;
  copies.counts = nullptr;
  return copies;
}

}  // namespace

struct GpuDistinctGather::Memory {
  explicit Memory(std::uint64_t most)
      : slots(slots_for(most)), fetched(most), counts(2), repeated(most) {}
  DeviceArray<std::uint32_t> slots, fetched, counts;
  DeviceArray<uint2> repeated;
};

std::uint64_t GpuDistinctGather::bytes(std::uint64_t most) {
  return slots_for(most) * sizeof(std::uint32_t) + most * (sizeof(std::uint32_t) + sizeof(uint2));
}

GpuDistinctGather::GpuDistinctGather(std::uint64_t most) : most_(most) {
  require<DoesNotFitError>(most < std::uint64_t{1} << 30,
                           "{} rows would be gathered at once; at most {} can be", most,
                           (std::uint64_t{1} << 30) - 1);
  memory_ = std::make_unique<Memory>(most);
}
GpuDistinctGather::~GpuDistinctGather() = default;

void GpuDistinctGather::gather(const GatherRows& a, void* at) {
  require<UsageError>(a.count <= most_, "{} rows are gathered at once, more than the {} foreseen",
                      a.count, most_);
  if (a.count == 0 || a.width == 0) return;
  auto* const stream = static_cast<cudaStream_t>(at);
  Memory& m = *memory_;
  const std::uint64_t slots = slots_for(a.count);
  check_cuda(cudaMemsetAsync(m.slots.data(), 0xff, slots * sizeof(std::uint32_t), stream),
             "finding distinct rows");
  check_cuda(cudaMemsetAsync(m.counts.data(), 0, 2 * sizeof(std::uint32_t), stream),
             "finding distinct rows");
  const Lists lists{m.fetched.data(), m.repeated.data(), m.counts.data()};
  list_rows<<<static_cast<unsigned>((a.count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      a, m.slots.data(), static_cast<std::uint32_t>(slots - 1), lists);
  check_cuda(cudaGetLastError(), "finding distinct rows");
  enqueue_gather(a, FetchedRows{{}, lists}, stream);
  enqueue_gather(copies_of(a), RepeatedRows{{}, lists}, stream);
}

}  // namespace plait
