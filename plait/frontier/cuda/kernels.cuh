// The kernels of the operators on GPUs (operators.cuh).
//
// The rows of a frontier stand in a queue. Work on their edges is balanced in two ways: a block
// takes as many rows as have a few thousand edges together, at most one per thread, and its threads
// all edges of these rows in turn, whichever row they belong to; long rows are cut into pieces,
// which a second kernel takes. Slots whose values change are marked, one bit each; the marks of own
// rows then become the next queue. So a slot is in the queue once, and most slots cost a bit.
#pragma once

#include <cub/block/block_scan.cuh>

#include "plait/base/cuda/warp.cuh"
#include "plait/frontier/edge_sums.h"
#include "plait/frontier/graph.h"
#include "plait/frontier/operators.h"
#include "plait/frontier/shared_value.h"

namespace plait::frontier {

inline constexpr int kThreads = 256;
inline constexpr int kSmallThreads = 1024;  // of the one block that makes steps alone
static_assert(kFewRows <= kSmallThreads);

// The state of a frontier in memory of the GPU. The host reads a copy.
struct State {
  std::uint64_t rows, edges;  // of the queue
  std::uint64_t steps;        // that one block has made
  std::uint64_t pieces;       // of long rows, or such rows
};

__device__ inline std::uint64_t thread() {
  return blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
}
__device__ inline std::uint64_t threads() { return gridDim.x * std::uint64_t{blockDim.x}; }

template <class F>
__global__ void for_rows(std::uint64_t count, const F f) {
  if (thread() < count) f(thread());
}

// Work on rows of the operators themselves.
template <class T>
struct Fill {
  T* to;
  T value;
  __device__ void operator()(std::uint64_t i) const { to[i] = value; }
};
struct Add {
  EdgeOffset* to;
  const EdgeOffset* more;
  __device__ void operator()(std::uint64_t i) const { to[i] += more[i]; }
};
template <class T>
struct Pull {
  T* to;
  const float* from;
  std::uint64_t stride;  // floats
  __device__ void operator()(std::uint64_t i) const {
    to[i] = *reinterpret_cast<const T*>(from + i * stride);
  }
};

// Notes which edges are kept.
template <class P>
struct Flag {
  P p;
  std::uint8_t* flags;
  __device__ std::uint64_t operator()(std::uint64_t row, Slot slot, EdgeOffset e) const {
    return flags[e] = p(row, slot, e);
  }
};
struct KeepSum {
  std::uint64_t* to;
  __device__ TwoSums operator()(std::uint64_t row, std::uint64_t sum) const {
    to[row] = sum;
    return {sum, 0};
  }
};
struct MarkHalo {
  GraphView view;
  std::uint32_t* marks;
  __device__ void operator()(std::uint64_t w) const { marks[w] = halo_bits(view, w); }
};

// The ways to fold numbers of rows into one, which is 0 at first.
struct Sum {
  static __device__ unsigned long long of(unsigned long long a, unsigned long long b) {
    return a + b;
  }
  static __device__ void into(unsigned long long* to, unsigned long long more) {
    atomicAdd(to, more);
  }
};
struct Greatest {
  static __device__ unsigned long long of(unsigned long long a, unsigned long long b) {
    return a > b ? a : b;
  }
  static __device__ void into(unsigned long long* to, unsigned long long more) {
    atomicMax(to, more);
  }
};
template <class Fold, class F>
__global__ void fold_rows(std::uint64_t count, const F f, std::uint64_t* to) {
  unsigned long long mine = 0;
  for (std::uint64_t i = thread(); i < count; i += threads()) mine = Fold::of(mine, f(i));
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    mine = Fold::of(mine, __shfl_xor_sync(kAll, mine, distance));
  if (threadIdx.x % kWarp == 0 && mine != 0)
    Fold::into(reinterpret_cast<unsigned long long*>(to), mine);
}

// The edges of up to one row per thread, as one sequence.
template <int kSize>
struct Tile {
  typename cub::BlockScan<std::uint32_t, kSize>::TempStorage scan;
  std::uint32_t row[kSize], ends[kSize];

  // Takes the row of each thread, with its number of edges; 0: none. Returns the sum of the edges.
  // All threads call it, and may read the tile when it returns.
  __device__ std::uint32_t take(std::uint32_t mine, std::uint32_t edges) {
    std::uint32_t end, sum;
    __syncthreads();  // the last tile has been read
    cub::BlockScan<std::uint32_t, kSize>(scan).InclusiveSum(edges, end, sum);
    row[threadIdx.x] = mine;
    ends[threadIdx.x] = end;
    __syncthreads();
    return sum;
  }
  // Calls visit(row, e) for the i-th edge.
  template <class Visit>
  __device__ void visit(const SlotEdges& edges, std::uint32_t i, const Visit& visit) const {
    int low = 0;
    for (int step = kSize / 2; step > 0; step /= 2)
      if (ends[low + step - 1] <= i) low += step;
    const std::uint32_t before = low == 0 ? 0 : ends[low - 1];
    visit(row[low], edges.begin[row[low]] + (i - before));
  }
};

// Pieces of long rows: rows in the lower half of each word, numbers of pieces in the upper one.
struct Pieces {
  std::uint64_t* of;
  std::uint64_t* count;

  // A piece has `size` edges.
  __device__ void add(std::uint32_t row, EdgeOffset degree, EdgeOffset size = kLongRow) const {
    const std::uint64_t pieces = (degree + size - 1) / size;
    std::uint64_t* const to = of + take_sum(count, pieces);
    for (std::uint64_t p = 0; p < pieces; ++p) to[p] = p << 32 | row;
  }
};

// Calls visit(row, e) for all edges of the rows, but of long ones, of which it lists the pieces. A
// block takes `at_once` rows, at most kThreads.
template <class Visit>
__global__ void __launch_bounds__(kThreads)
    visit_rows(const SlotEdges edges, const std::uint32_t* rows, std::uint64_t count,
               std::uint32_t at_once, const Visit visit, const Pieces pieces) {
  __shared__ Tile<kThreads> tile;
  for (std::uint64_t first = blockIdx.x * std::uint64_t{at_once}; first < count;
       first += std::uint64_t{gridDim.x} * at_once) {
    const std::uint64_t i = first + threadIdx.x;
    const bool mine = threadIdx.x < at_once && i < count;
    const std::uint32_t row = mine ? rows[i] : 0;
    EdgeOffset degree = mine ? edges.degree(row) : 0;
    if (degree > kLongRow) {
      pieces.add(row, degree);
      degree = 0;
    }
    const std::uint32_t sum = tile.take(row, static_cast<std::uint32_t>(degree));
    for (std::uint32_t e = threadIdx.x; e < sum; e += kThreads) tile.visit(edges, e, visit);
  }
}

// Does so for the pieces that were listed, one per block at a time.
template <class Visit>
__global__ void __launch_bounds__(kThreads)
    visit_pieces(const SlotEdges edges, const Pieces pieces, const Visit visit) {
  for (std::uint64_t i = blockIdx.x; i < *pieces.count; i += gridDim.x) {
    const auto row = static_cast<std::uint32_t>(pieces.of[i]);
    const EdgeOffset begin = edges.begin[row] + (pieces.of[i] >> 32) * kLongRow;
    const EdgeOffset end = min(edges.end[row], begin + kLongRow);
    for (EdgeOffset e = begin + threadIdx.x; e < end; e += kThreads) visit(row, e);
  }
}

// Calls f for an edge, and marks the slot if its value has changed.
template <class F>
struct Advance {
  const Slot* slots;
  std::uint32_t* marks;
  F f;
  __device__ void operator()(std::uint32_t row, EdgeOffset e) const {
    const Slot slot = slots[e];
    if (f(std::uint64_t{row}, slot, e)) set_bit(marks, slot);
  }
};
template <class F>
struct Each {
  const Slot* slots;
  F f;
  __device__ void operator()(std::uint32_t row, EdgeOffset e) const {
    f(std::uint64_t{row}, slots[e], e);
  }
};

struct Queue {
  std::uint32_t* rows;
  State* state;
};

// Appends the own rows with a bit to the queue. A thread has the rows of a word.
__global__ inline void __launch_bounds__(kThreads)
    append_rows(const Queue queue, const std::uint32_t* row_bits, const SlotEdges edges,
                std::uint64_t own) {
  using Scan = cub::BlockScan<std::uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ unsigned long long base;
  const std::uint64_t words = (own + 31) / 32;
  for (std::uint64_t first = blockIdx.x * std::uint64_t{kThreads}; first < words;
       first += threads()) {
    const std::uint64_t w = first + threadIdx.x;
    std::uint32_t bits = w < words ? row_bits[w] : 0;
    std::uint32_t before, sum;
    Scan(scan).ExclusiveSum(static_cast<std::uint32_t>(__popc(bits)), before, sum);
    if (threadIdx.x == 0 && sum > 0)
      base = atomicAdd(reinterpret_cast<unsigned long long*>(&queue.state->rows),
                       static_cast<unsigned long long>(sum));
    __syncthreads();
    unsigned long long degrees = 0;
    for (std::uint64_t at = base + before; bits != 0; bits &= bits - 1) {
      const auto row = static_cast<std::uint32_t>(w * 32) +
                       static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
      queue.rows[at++] = row;
      degrees += edges.degree(row);
    }
    degrees = sum_of_warp(degrees);
    if (threadIdx.x % kWarp == 0 && degrees > 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(&queue.state->edges), degrees);
    __syncthreads();  // base is read
  }
}

// Marks the own rows for which p. A warp has the rows of a word.
template <class P>
__global__ void mark_rows(std::uint64_t own, const P p, std::uint32_t* marks) {
  const std::uint64_t end = (own + kWarp - 1) / kWarp * kWarp;
  for (std::uint64_t row = thread(); row < end; row += threads()) {
    const unsigned found = __ballot_sync(kAll, row < own && p(row));
    if (threadIdx.x % kWarp == 0 && found != 0) marks[row / 32] |= found;
  }
}

// Marks the rows of a queue for which p.
template <class P>
struct MarkOf {
  const std::uint32_t* rows;
  std::uint32_t* marks;
  P p;
  __device__ void operator()(std::uint64_t i) const {
    if (p(std::uint64_t{rows[i]})) set_bit(marks, rows[i]);
  }
};

// Sets the bits of the rows of a queue.
struct SetBits {
  const std::uint32_t* rows;
  std::uint32_t* bits;
  __device__ void operator()(std::uint64_t i) const { set_bit(bits, rows[i]); }
};
// Bits as one number per slot, and back.
struct SpreadBits {
  const std::uint32_t* bits;
  std::uint32_t* flags;
  __device__ void operator()(std::uint64_t s) const { flags[s] = bits[s / 32] >> s % 32 & 1; }
};
struct PackBits {
  const std::uint32_t* flags;
  std::uint64_t slots;
  std::uint32_t* bits;
  __device__ void operator()(std::uint64_t w) const {
    std::uint32_t word = 0;
    for (std::uint64_t s = w * 32; s < min(slots, w * 32 + 32); ++s) word |= flags[s] << s % 32;
    bits[w] = word;
  }
};

// The question of Frontier::meet().
template <class P, class Take>
struct Meeting {
  SlotEdges edges;
  const std::uint32_t* bits;  // by slot, of the frontier
  P p;
  Take take;

  __device__ bool meets(EdgeOffset e) const {
    return (bits[edges.slots[e] / 32] >> edges.slots[e] % 32 & 1) != 0;
  }
};

// A thread looks at the first edges of its row, as most rows find what they look for there. The
// warp then helps rows that do not; rows that are still longer are left to the list.
template <class P, class Take>
__global__ void meet_rows(std::uint64_t own, const Meeting<P, Take> meeting, std::uint32_t* marks,
                          const Pieces long_rows) {
  constexpr EdgeOffset kAlone = 8;
  const SlotEdges& edges = meeting.edges;
  const std::uint64_t end = (own + kWarp - 1) / kWarp * kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::uint64_t row = thread(); row < end; row += threads()) {
    const bool looks = row < own && meeting.p(row);
    bool found = false;
    EdgeOffset e = looks ? edges.begin[row] : 0;
    const EdgeOffset last = looks ? edges.end[row] : 0;
    for (const EdgeOffset stop = min(last, e + kAlone); e < stop; ++e)
      if (meeting.meets(e)) {
        meeting.take(row, edges.slots[e], e);
        found = true;
        break;
      }
    for (unsigned left = __ballot_sync(kAll, !found && e < last); left != 0; left &= left - 1) {
      const int who = __ffs(static_cast<int>(left)) - 1;
      const std::uint64_t theirs = row - lane + static_cast<unsigned>(who);
      EdgeOffset at = __shfl_sync(kAll, e, who);
      const EdgeOffset their_last = __shfl_sync(kAll, last, who);
      if (their_last - at > kLongRow) {
        if (lane == 0) long_rows.of[take_sum(long_rows.count, std::uint64_t{1})] = theirs;
        continue;
      }
      for (; at < their_last; at += kWarp) {
        const bool mine = at + lane < their_last && meeting.meets(at + lane);
        const unsigned hits = __ballot_sync(kAll, mine);
        if (hits == 0) continue;
        if (lane == static_cast<unsigned>(__ffs(static_cast<int>(hits)) - 1))
          meeting.take(theirs, edges.slots[at + lane], at + lane);
        found = found || lane == static_cast<unsigned>(who);
        break;
      }
    }
    const unsigned marked = __ballot_sync(kAll, found);
    if (lane == 0 && marked != 0) marks[row / 32] |= marked;
  }
}

// A block has a row of the list.
template <class P, class Take>
__global__ void __launch_bounds__(kThreads)
    meet_long_rows(const Meeting<P, Take> meeting, std::uint32_t* marks, const Pieces long_rows) {
  __shared__ unsigned first;  // thread that has found an edge
  const SlotEdges& edges = meeting.edges;
  for (std::uint64_t i = blockIdx.x; i < *long_rows.count; i += gridDim.x) {
    const std::uint64_t row = long_rows.of[i];
    for (EdgeOffset at = edges.begin[row]; at < edges.end[row]; at += kThreads) {
      const EdgeOffset e = at + threadIdx.x;
      if (threadIdx.x == 0) first = kThreads;
      __syncthreads();
      if (e < edges.end[row] && meeting.meets(e)) atomicMin(&first, threadIdx.x);
      __syncthreads();
      const unsigned found = first;
      __syncthreads();
      if (found == kThreads) continue;
      if (threadIdx.x == found) {
        meeting.take(row, edges.slots[e], e);
        set_bit(marks, row);
      }
      break;
    }
  }
}

// Makes steps as long as there are few rows with few edges, at most `most`, by one block: a step
// takes a few reads of the cache that all multiprocessors share, where one by several kernels and
// the host takes as long as ten. Each step begins by taking the marks of its rows away, which no
// thread sets again before all are gone.
template <class F>
__global__ void __launch_bounds__(kSmallThreads)
    advance_small(const SlotEdges edges, const F f, std::uint32_t* rows, std::uint32_t* marks,
                  State* state, std::uint64_t most) {
  __shared__ Tile<kSmallThreads> tile;
  __shared__ std::uint32_t queues[2][kFewEdges];  // this step's, and the next one's
  __shared__ std::uint32_t count;
  __shared__ unsigned long long degrees;
  auto size = static_cast<std::uint32_t>(state->rows);
  if (threadIdx.x < size) queues[0][threadIdx.x] = rows[threadIdx.x];
  __syncthreads();
  std::uint64_t steps = 0;
  for (; size <= kFewRows; ++steps) {
    const std::uint32_t row = threadIdx.x < size ? queues[steps % 2][threadIdx.x] : 0;
    // A row may have more edges than 32 bits count; kFewEdges + 1 of each are enough to see it.
    const EdgeOffset degree = threadIdx.x < size ? edges.degree(row) : 0;
    if (threadIdx.x < size && steps > 0) atomicAnd(marks + row / 32, ~(1u << row % 32));
    if (threadIdx.x == 0) count = 0;
    const std::uint32_t sum =
        tile.take(row, static_cast<std::uint32_t>(min(degree, EdgeOffset{kFewEdges + 1})));
    if (size == 0 || sum > kFewEdges || steps == most) break;
    for (std::uint32_t i = threadIdx.x; i < sum; i += kSmallThreads)
      tile.visit(edges, i, [&](std::uint32_t of, EdgeOffset e) {
        const Slot slot = edges.slots[e];
        const std::uint32_t mark = 1u << slot % 32;
        if (f(std::uint64_t{of}, slot, e) && (atomicOr(marks + slot / 32, mark) & mark) == 0)
          queues[(steps + 1) % 2][atomicAdd(&count, 1u)] = slot;
      });
    __syncthreads();
    size = count;
    __syncthreads();  // it is read
  }
  if (threadIdx.x == 0) degrees = 0;
  __syncthreads();
  unsigned long long mine = 0;
  for (std::uint32_t i = threadIdx.x; i < size; i += kSmallThreads) {
    const std::uint32_t row = rows[i] = queues[steps % 2][i];
    if (steps > 0) atomicAnd(marks + row / 32, ~(1u << row % 32));
    mine += edges.degree(row);
  }
  mine = sum_of_warp(mine);
  if (threadIdx.x % kWarp == 0) atomicAdd(&degrees, mine);
  __syncthreads();
  if (threadIdx.x == 0) *state = {size, degrees, steps, 0};
}

}  // namespace plait::frontier
