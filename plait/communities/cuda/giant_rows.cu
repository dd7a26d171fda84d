// The blocks of a row add its entries to an array of sums by label. Then they find the best label
// by the entries, not by the array, which is mostly zeros, and clear it by the entries as well.
#include <algorithm>

#include "plait/base/cuda/one_each.cuh"
#include "plait/communities/cuda/giant_rows.cuh"

namespace plait {
namespace {

constexpr std::uint32_t kGiantsAtOnce = 8;
constexpr unsigned kGiantBlocks = 64;  // of a row

// Rows that move at once: blockIdx.y tells the row.
struct Giants {
  std::uint32_t rows[kGiantsAtOnce];
  Count* sums;           // by label, of each row; zero in between
  Best* best_of_blocks;  // of each row

  __device__ std::uint32_t row() const { return rows[blockIdx.y]; }
  __device__ Count* sums_of(const Moves& m) const {
    return sums + blockIdx.y * std::uint64_t{m.graph.count};
  }
};

// Calls act(entry, label) for this thread's share of the entries of a giant row.
template <class Act>
__device__ void for_entries(const Moves& m, std::uint32_t row, Act act) {
  const std::uint32_t vertex = m.graph.vertex(row);
  for (EdgeOffset e = m.graph.begin[row] + blockIdx.x * blockDim.x + threadIdx.x;
       e < m.graph.end[row]; e += gridDim.x * blockDim.x)
    if (const std::uint32_t label = m.label(vertex, e); label != kNoLabel) act(e, label);
}

// Sums the edges to the own label, which may be most of them, in registers first.
__global__ void add_giants(const __grid_constant__ Moves m, const __grid_constant__ Giants giants) {
  const std::uint32_t row = giants.row(), own = m.labels[m.graph.vertex(row)];
  Count* const sums = giants.sums_of(m);
  Count own_edges = 0;
  for_entries(m, row, [&](EdgeOffset e, std::uint32_t label) {
    if (label == own)
      own_edges += m.graph.weight(e);
    else
      atomicAdd(sums + label, static_cast<Count>(m.graph.weight(e)));
  });
  own_edges = sum_of_warp(own_edges);
  if (threadIdx.x % kWarp == 0 && own_edges > 0) atomicAdd(sums + own, own_edges);
}

__global__ void find_best_of_giants(const __grid_constant__ Moves m,
                                    const __grid_constant__ Giants giants) {
  constexpr unsigned kWarps = kThreadsOfItems / kWarp;
  __shared__ Best best_of_warps[kWarps];
  const std::uint32_t row = giants.row();
  const Count* const sums = giants.sums_of(m);
  const Gains gains(m, row);
  Best best{0, kNoLabel};
  for_entries(m, row,
              [&](EdgeOffset, std::uint32_t label) { gains.take(best, label, sums[label]); });
  best.take_of_block(best_of_warps, kWarps);
  if (threadIdx.x == 0) giants.best_of_blocks[blockIdx.y * kGiantBlocks + blockIdx.x] = best;
}

// Chooses, and clears the sums.
__global__ void move_giants(const __grid_constant__ Moves m,
                            const __grid_constant__ Giants giants) {
  const std::uint32_t row = giants.row(), own = m.labels[m.graph.vertex(row)];
  Count* const sums = giants.sums_of(m);
  for_entries(m, row, [&](EdgeOffset, std::uint32_t label) {
    if (label != own) sums[label] = 0;
  });
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  Best best{0, kNoLabel};
  for (unsigned b = 0; b < kGiantBlocks; ++b) {
    const Best& other = giants.best_of_blocks[blockIdx.y * kGiantBlocks + b];
    best.take(other.value, other.label);
  }
  m.next[row] = Gains(m, row).choose(best, sums[own]);
  sums[own] = 0;
}

void move_at_once(const Moves& moves, const Giants& giants, unsigned count, cudaStream_t stream) {
  const dim3 blocks(kGiantBlocks, count);
  add_giants<<<blocks, kThreadsOfItems, 0, stream>>>(moves, giants);
  find_best_of_giants<<<blocks, kThreadsOfItems, 0, stream>>>(moves, giants);
  move_giants<<<blocks, kThreadsOfItems, 0, stream>>>(moves, giants);
}

}  // namespace

GiantRows::GiantRows(const WeightedRows& graph, const std::uint32_t* rows, std::uint32_t count,
                     cudaStream_t stream)
    : stream_(stream) {
  if (count == 0) return;
  std::vector<std::uint32_t> numbers(count);
  read_back(rows, numbers.data(), count, stream);
  for (const std::uint32_t row : numbers)
    rows_.push_back(
        {row, graph.vertices == nullptr ? row : read_back(graph.vertices + row, stream)});
  const std::uint64_t at_once = std::min(count, kGiantsAtOnce);
  sums_ = zeros_of<Count>(at_once * graph.count, stream);
  best_of_blocks_ = array_of<Best>(at_once * kGiantBlocks, stream);
}

void GiantRows::move(const Moves& moves) {
  Giants now{.rows = {}, .sums = sums_.data(), .best_of_blocks = best_of_blocks_.data()};
  unsigned count = 0;
  for (const Row& row : rows_) {
    if (turn_of(row.vertex, moves.round) != moves.turn) continue;
    now.rows[count++] = row.row;
    if (count < kGiantsAtOnce) continue;
    move_at_once(moves, now, count, stream_);
    count = 0;
  }
  if (count > 0) move_at_once(moves, now, count, stream_);
}

}  // namespace plait
