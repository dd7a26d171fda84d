// A warp has a short row's entries in its registers, and each lane compares its label with all
// others. A block adds the entries of a longer row to a hash table of sums by label: in shared
// memory, or in the GPU's for rows with more labels than fit there.
#include <algorithm>
#include <bit>

#include "plait/base/cuda/one_each.cuh"
#include "plait/base/error.h"
#include "plait/communities/cuda/label_sums.cuh"
#include "plait/communities/cuda/move_rows.cuh"
#include "plait/communities/cuda/on_stream.cuh"

namespace plait {
namespace {

constexpr int kSmallThreads = 128, kLargeThreads = 512;
constexpr std::uint64_t kTablesBytes = std::uint64_t{512} << 20, kMostTables = 512;

__global__ void move_short(const __grid_constant__ Moves m) {
  const std::uint64_t number = item_of_thread() / kWarp;
  if (number >= m.graph.rows) return;
  const auto row = static_cast<std::uint32_t>(number);
  const std::uint64_t entries = m.entries(row);
  if (entries > kShort || !m.moves(row)) return;
  const Gains gains(m, row);
  const std::uint32_t lane = threadIdx.x % kWarp;
  const EdgeOffset e = m.graph.begin[row] + lane;
  const std::uint32_t label = lane < entries ? m.label(gains.vertex, e) : kNoLabel;
  const std::uint64_t weight = lane < entries ? m.graph.weight(e) : 0;
  std::uint64_t edges = 0, own_edges = 0;
  for (int other = 0; other < static_cast<int>(entries); ++other) {
    const std::uint32_t other_label = __shfl_sync(kAll, label, other);
    const std::uint64_t other_weight = __shfl_sync(kAll, weight, other);
    if (other_label == label) edges += other_weight;
    if (other_label == gains.own) own_edges += other_weight;
  }
  Best best{0, kNoLabel};
  if (label != kNoLabel) gains.take(best, label, edges);
  best.take_of_warp();
  if (lane == 0) m.next[row] = gains.choose(best, own_edges);
}

__device__ void move_by_table(const Moves& m, std::uint32_t row, LabelSums table) {
  __shared__ Best best_of_warps[kLargeThreads / kWarp];
  __shared__ std::uint64_t own_edges;
  const Gains gains(m, row);
  __syncthreads();  // the last row's sums have been read
  table.clear();
  if (threadIdx.x == 0) own_edges = 0;
  __syncthreads();
  for (EdgeOffset e = m.graph.begin[row] + threadIdx.x; e < m.graph.end[row]; e += blockDim.x)
    if (const std::uint32_t label = m.label(gains.vertex, e); label != kNoLabel)
      table.add(label, m.graph.weight(e));
  __syncthreads();
  Best best{0, kNoLabel};
  for (std::uint32_t slot = threadIdx.x; slot <= table.mask; slot += blockDim.x) {
    const std::uint32_t label = table.labels[slot];
    if (label == kNoLabel) continue;
    if (label == gains.own) own_edges = table.sum(slot);
    gains.take(best, label, table.sum(slot));
  }
  best.take_of_block(best_of_warps, blockDim.x / kWarp);
  if (threadIdx.x == 0) m.next[row] = gains.choose(best, own_edges);
}

// Returns a power of two of at least twice the entries, but at most `most`.
__device__ std::uint32_t slots_for(std::uint64_t entries, std::uint32_t most) {
  std::uint32_t slots = kWarp;
  while (slots < most && 2 * entries > slots) slots *= 2;
  return slots;
}

// One block per row of the list, which has the rows whose turn it is.
__global__ void move_in_shared(const __grid_constant__ Moves m, const std::uint32_t* rows,
                               std::uint32_t most_slots) {
  extern __shared__ std::uint32_t memory[];
  const std::uint32_t c = rows[blockIdx.x];
  move_by_table(m, c, LabelSums(memory, slots_for(m.entries(c), most_slots)));
}

// The blocks share the rows of the list; each has a table.
__global__ void move_in_memory(const __grid_constant__ Moves m, const std::uint32_t* rows,
                               std::uint32_t count, std::uint32_t slots, std::uint32_t* tables) {
  std::uint32_t* const memory =
      tables + blockIdx.x * std::uint64_t{LabelSums::kWordsPerSlot} * slots;
  for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x)
    if (m.moves(rows[i]))
      move_by_table(m, rows[i], LabelSums(memory, slots_for(m.entries(rows[i]), slots)));
}

}  // namespace

void move_short_rows(const Moves& moves, cudaStream_t stream) {
  if (moves.graph.rows > 0)
    move_short<<<blocks_of_items(std::uint64_t{moves.graph.rows} * kWarp), kThreadsOfItems, 0,
                 stream>>>(moves);
}

void move_listed_rows(const Moves& moves, RowList list, const std::uint32_t* rows,
                      std::uint32_t count, cudaStream_t stream) {
  const int threads = list == kSmallRows ? kSmallThreads : kLargeThreads;
  const std::uint32_t slots = list == kSmallRows ? kSmallSlots : kLargeSlots;
  if (count > 0)
    move_in_shared<<<count, threads, LabelSums::bytes(slots), stream>>>(moves, rows, slots);
}

void allow_large_tables() {
  check_cuda(cudaFuncSetAttribute(move_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(LabelSums::bytes(kLargeSlots))),
             kFindingCommunities);
}

RowTables::RowTables(std::uint64_t rows, std::uint32_t labels, cudaStream_t stream)
    : stream_(stream) {
  if (rows == 0) return;
  require<DoesNotFitError>(labels <= 1u << 30, "{} communities of one row do not fit", labels);
  slots_ = std::bit_ceil(static_cast<std::uint32_t>(labels + labels / 4));
  const std::uint64_t most = std::max<std::uint64_t>(kTablesBytes / LabelSums::bytes(slots_), 1);
  blocks_ = static_cast<unsigned>(std::min({most, rows, kMostTables}));
  tables_ = array_of<std::uint32_t>(blocks_ * LabelSums::kWordsPerSlot * slots_, stream);
}

void RowTables::move(const Moves& moves, const std::uint32_t* rows, std::uint32_t count) {
  if (count > 0)
    move_in_memory<<<blocks_, kLargeThreads, 0, stream_>>>(moves, rows, count, slots_,
                                                           tables_.data());
}

}  // namespace plait
