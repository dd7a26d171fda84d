// Local moves (reorder/merge.h) on the GPU. A warp looks at the entries of a short row, and a block
// at those of a longer one, by a hash table of sums by label: in shared memory, or in the GPU's for
// rows with more labels than it holds. Many blocks look at each of the few giant rows, by an array
// of sums.
#include <algorithm>
#include <bit>
#include <vector>

#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/reorder/cuda/quotient.cuh"
#include "plait/reorder/merge_rule.h"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr const char* kWhat = "merging communities";
constexpr std::uint32_t kNobody = 0xffffffffu;

// Rows by the number of their entries: by a warp each; by small and large blocks with tables in
// shared memory; by blocks with tables in the GPU's memory; by many blocks each, if there are few
// such rows.
constexpr std::uint32_t kShort = kWarp;
constexpr std::uint32_t kSmallSlots = 1024, kLargeSlots = 8192;
constexpr int kSmallThreads = 128, kLargeThreads = 512;
constexpr std::uint64_t kTablesBytes = std::uint64_t{512} << 20;
constexpr EdgeOffset kGiant = EdgeOffset{1} << 14;
constexpr std::uint32_t kMostGiants = 64, kGiantsAtOnce = 8;
constexpr unsigned kGiantBlocks = 64;

enum List { kSmallRows, kLargeRows, kRowsInMemory, kGiantRows, kLists };

using Count = unsigned long long;

// What a move looks at.
struct Moves {
  const EdgeOffset* offsets;
  const std::uint32_t* neighbours;
  const std::uint64_t* weights;
  const std::uint64_t* degrees;
  std::uint32_t communities;
  double by_chance;
  const std::uint32_t* labels;
  const std::uint64_t* label_degrees;  // edge ends, by label
  const std::uint32_t* label_sizes;    // communities, by label
  std::uint32_t* next;
  std::uint32_t round, turn;

  __device__ std::uint64_t entries(std::uint32_t c) const { return offsets[c + 1] - offsets[c]; }
  __device__ bool moves(std::uint32_t c) const { return turn_of(c, round) == turn; }
};

// A label and what it gains. Of labels that gain equally the lowest is the best.
struct Best {
  double value;
  std::uint32_t label;

  __device__ void take(double other, std::uint32_t other_label) {
    if (other_label == kNobody) return;
    if (label == kNobody || other > value || (other == value && other_label < label))
      value = other, label = other_label;
  }
  __device__ void take_of_warp() {
    for (int distance = 16; distance > 0; distance /= 2) {
      const double other = __shfl_xor_sync(kAll, value, distance);
      const std::uint32_t other_label = __shfl_xor_sync(kAll, label, distance);
      take(other, other_label);
    }
  }
};

// The gains of one community.
struct Gains {
  const Moves& m;
  std::uint32_t own, own_size;
  std::uint64_t degree;

  __device__ Gains(const Moves& moves, std::uint32_t c)
      : m(moves),
        own(moves.labels[c]),
        own_size(moves.label_sizes[own]),
        degree(moves.degrees[c]) {}
  __device__ void take(Best& best, std::uint32_t label, std::uint64_t edges) const {
    if (label == own || must_stay(own, own_size, label, m.label_sizes[label])) return;
    best.take(merge_gain(edges, m.by_chance, degree, m.label_degrees[label]), label);
  }
  // The best label, given the edges to the own one.
  __device__ std::uint32_t choose(const Best& best, std::uint64_t own_edges) const {
    const double stay = merge_gain(own_edges, m.by_chance, degree, m.label_degrees[own] - degree);
    return best.label != kNobody && best.value > stay ? best.label : own;
  }
};

__global__ void move_short(const __grid_constant__ Moves m) {
  const std::uint64_t number = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / kWarp;
  if (number >= m.communities) return;
  const auto c = static_cast<std::uint32_t>(number);
  const std::uint64_t entries = m.entries(c);
  if (entries > kShort || !m.moves(c)) return;
  const std::uint32_t lane = threadIdx.x % kWarp;
  const EdgeOffset e = m.offsets[c] + lane;
  const std::uint32_t label = lane < entries ? m.labels[m.neighbours[e]] : kNobody;
  const std::uint64_t weight = lane < entries ? m.weights[e] : 0;
  const Gains gains(m, c);
  std::uint64_t edges = 0, own_edges = 0;
  for (int other = 0; other < static_cast<int>(entries); ++other) {
    const std::uint32_t other_label = __shfl_sync(kAll, label, other);
    const std::uint64_t other_weight = __shfl_sync(kAll, weight, other);
    if (other_label == label) edges += other_weight;
    if (other_label == gains.own) own_edges += other_weight;
  }
  Best best{0, kNobody};
  if (label != kNobody) gains.take(best, label, edges);
  best.take_of_warp();
  if (lane == 0) m.next[c] = gains.choose(best, own_edges);
}

// Sums by label. A sum is in two halves, for which there are fast additions.
struct Table {
  std::uint32_t *labels, *low, *high;
  std::uint32_t mask;

  __device__ Table(std::uint32_t* memory, std::uint32_t slots)
      : labels(memory), low(memory + slots), high(memory + 2 * slots), mask(slots - 1) {}
  __device__ void clear() {
    for (std::uint32_t i = threadIdx.x; i <= mask; i += blockDim.x)
      labels[i] = kNobody, low[i] = 0, high[i] = 0;
  }
  __device__ std::uint32_t first_slot(std::uint32_t label) const {
    return label * 0x9E3779B1u & mask;
  }
  // There must be a slot for each label.
  __device__ void add(std::uint32_t label, std::uint64_t weight) {
    std::uint32_t slot = first_slot(label);
    for (;; slot = (slot + 1) & mask) {
      std::uint32_t here = *static_cast<volatile std::uint32_t*>(labels + slot);
      if (here == kNobody) here = atomicCAS(labels + slot, kNobody, label);
      if (here == kNobody || here == label) break;
    }
    const auto part = static_cast<std::uint32_t>(weight);
    const std::uint32_t before = atomicAdd(low + slot, part);
    const std::uint32_t carry = static_cast<std::uint32_t>(weight >> 32) + (before + part < before);
    if (carry != 0) atomicAdd(high + slot, carry);
  }
  __device__ std::uint64_t sum(std::uint32_t slot) const {
    return std::uint64_t{high[slot]} << 32 | low[slot];
  }
};

__device__ void move_by_table(const Moves& m, std::uint32_t c, Table table) {
  __shared__ Best best_of_warps[kLargeThreads / kWarp];
  __shared__ std::uint64_t own_edges;
  const Gains gains(m, c);
  __syncthreads();  // the last row's sums have been read
  table.clear();
  if (threadIdx.x == 0) own_edges = 0;
  __syncthreads();
  for (EdgeOffset e = m.offsets[c] + threadIdx.x; e < m.offsets[c + 1]; e += blockDim.x)
    table.add(m.labels[m.neighbours[e]], m.weights[e]);
  __syncthreads();
  Best best{0, kNobody};
  for (std::uint32_t slot = threadIdx.x; slot <= table.mask; slot += blockDim.x) {
    const std::uint32_t label = table.labels[slot];
    if (label == kNobody) continue;
    if (label == gains.own) own_edges = table.sum(slot);
    gains.take(best, label, table.sum(slot));
  }
  best.take_of_warp();
  if (threadIdx.x % kWarp == 0) best_of_warps[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (std::uint32_t w = 1; w < blockDim.x / kWarp; ++w)
    best.take(best_of_warps[w].value, best_of_warps[w].label);
  m.next[c] = gains.choose(best, own_edges);
}

// A power of two with a slot, and half as many again, for each label of a row.
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
  move_by_table(m, c, Table(memory, slots_for(m.entries(c), most_slots)));
}

// The blocks share the rows of the list; each has a table.
__global__ void move_in_memory(const __grid_constant__ Moves m, const std::uint32_t* rows,
                               std::uint32_t count, std::uint32_t slots, std::uint32_t* tables) {
  std::uint32_t* const memory = tables + blockIdx.x * std::uint64_t{3} * slots;
  for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x)
    if (m.moves(rows[i]))
      move_by_table(m, rows[i], Table(memory, slots_for(m.entries(rows[i]), slots)));
}

// Giant rows, a number of blocks each: blockIdx.y tells the row.
struct Giants {
  std::uint32_t rows[kGiantsAtOnce];
  Count* sums;           // by label, of each row; zero in between
  Best* best_of_blocks;  // of each row

  __device__ std::uint32_t row() const { return rows[blockIdx.y]; }
  __device__ Count* sums_of(const Moves& m) const {
    return sums + blockIdx.y * std::uint64_t{m.communities};
  }
};

// Calls act(entry, label) for this thread's share of the entries of a giant row.
template <class Act>
__device__ void for_entries(const Moves& m, std::uint32_t c, Act act) {
  for (EdgeOffset e = m.offsets[c] + blockIdx.x * blockDim.x + threadIdx.x; e < m.offsets[c + 1];
       e += gridDim.x * blockDim.x)
    act(e, m.labels[m.neighbours[e]]);
}

// Sums those of the own label, which may be most, in registers first.
__global__ void add_giants(const __grid_constant__ Moves m, const __grid_constant__ Giants giants) {
  const std::uint32_t c = giants.row(), own = m.labels[c];
  Count* const sums = giants.sums_of(m);
  Count own_edges = 0;
  for_entries(m, c, [&](EdgeOffset e, std::uint32_t label) {
    if (label == own)
      own_edges += m.weights[e];
    else
      atomicAdd(sums + label, static_cast<Count>(m.weights[e]));
  });
  for (int distance = 16; distance > 0; distance /= 2)
    own_edges += __shfl_xor_sync(kAll, own_edges, distance);
  if (threadIdx.x % kWarp == 0 && own_edges > 0) atomicAdd(sums + own, own_edges);
}

__global__ void find_best_of_giants(const __grid_constant__ Moves m,
                                    const __grid_constant__ Giants giants) {
  __shared__ Best best_of_warps[kThreads / kWarp];
  const std::uint32_t c = giants.row();
  const Count* const sums = giants.sums_of(m);
  const Gains gains(m, c);
  Best best{0, kNobody};
  for_entries(m, c, [&](EdgeOffset, std::uint32_t label) { gains.take(best, label, sums[label]); });
  best.take_of_warp();
  if (threadIdx.x % kWarp == 0) best_of_warps[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kThreads / kWarp; ++w)
    best.take(best_of_warps[w].value, best_of_warps[w].label);
  giants.best_of_blocks[blockIdx.y * kGiantBlocks + blockIdx.x] = best;
}

// Chooses, and clears the sums.
__global__ void move_giants(const __grid_constant__ Moves m,
                            const __grid_constant__ Giants giants) {
  const std::uint32_t c = giants.row(), own = m.labels[c];
  Count* const sums = giants.sums_of(m);
  for_entries(m, c, [&](EdgeOffset, std::uint32_t label) {
    if (label != own) sums[label] = 0;
  });
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  Best best{0, kNobody};
  for (unsigned b = 0; b < kGiantBlocks; ++b) {
    const Best& other = giants.best_of_blocks[blockIdx.y * kGiantBlocks + b];
    best.take(other.value, other.label);
  }
  m.next[c] = Gains(m, c).choose(best, sums[own]);
  sums[own] = 0;
}

struct Lists {
  std::uint32_t* rows[kLists];
  std::uint32_t* counts;  // of these, and the entries of the longest row, if they are at most 2^32
};

__global__ void list_rows(const EdgeOffset* offsets, std::uint32_t communities, Lists lists) {
  const std::uint64_t c = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (c >= communities) return;
  const EdgeOffset entries = offsets[c + 1] - offsets[c];
  if (entries <= kShort) return;
  // A table is never full: it has a slot for every label, or more than the row has entries.
  const bool small = entries <= kSmallSlots / 2 || communities <= kSmallSlots / 2;
  const bool large = entries <= kLargeSlots * 3 / 4 || communities <= kLargeSlots;
  const int list = small              ? kSmallRows
                   : large            ? kLargeRows
                   : entries < kGiant ? kRowsInMemory
                                      : kGiantRows;
  lists.rows[list][atomicAdd(lists.counts + list, 1u)] = static_cast<std::uint32_t>(c);
  atomicMax(lists.counts + kLists, static_cast<std::uint32_t>(min(entries, EdgeOffset{kNobody})));
}

// Sorts the rows of a list by their turn: lists[turn * count] ff. has those of a turn.
__global__ void list_turns(const std::uint32_t* rows, std::uint32_t count, std::uint32_t round,
                           std::uint32_t* lists, std::uint32_t* counts) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const std::uint32_t c = i < count ? rows[i] : 0, lane = threadIdx.x % kWarp;
  const std::uint32_t mine = i < count ? turn_of(c, round) : kMoveTurns;
  for (std::uint32_t turn = 0; turn < kMoveTurns; ++turn) {
    const unsigned same = __ballot_sync(kAll, mine == turn);
    std::uint32_t begin = 0;
    if (lane == 0 && same != 0)
      begin = atomicAdd(counts + turn, static_cast<std::uint32_t>(__popc(same)));
    begin = __shfl_sync(kAll, begin, 0);
    if (mine == turn)
      lists[turn * std::uint64_t{count} + begin + __popc(same & ((1u << lane) - 1))] = c;
  }
}

__global__ void start(std::uint32_t communities, std::uint32_t* labels, std::uint32_t* sizes) {
  const std::uint64_t c = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (c < communities) labels[c] = static_cast<std::uint32_t>(c), sizes[c] = 1;
}

__global__ void set_labels(const __grid_constant__ Moves m, std::uint32_t* labels, Count* degrees,
                           std::uint32_t* sizes, std::uint32_t* moves) {
  const std::uint64_t number = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const auto c = static_cast<std::uint32_t>(number);
  const bool turn = number < m.communities && m.moves(c);
  const bool moved = turn && m.next[c] != labels[c];
  const unsigned all = __ballot_sync(kAll, moved);
  if (threadIdx.x % kWarp == 0 && all != 0) atomicAdd(moves, static_cast<unsigned>(__popc(all)));
  if (!moved) return;
  const std::uint32_t from = labels[c], to = m.next[c];
  atomicAdd(degrees + from, ~static_cast<Count>(m.degrees[c]) + 1);  // takes away
  atomicAdd(degrees + to, static_cast<Count>(m.degrees[c]));
  atomicSub(sizes + from, 1u);
  atomicAdd(sizes + to, 1u);
  labels[c] = to;
}

class LocalMoves {
 public:
  LocalMoves(const DeviceQuotient& graph, double resolution, cudaStream_t stream)
      : stream_(stream),
        pool_{stream, stream},
        count_(graph.communities),
        blocks_((count_ + kThreads - 1) / kThreads),
        labels_(count_, pool_),
        next_(count_, pool_),
        sizes_(count_, pool_),
        lists_(std::uint64_t{kLists} * count_, pool_),
        counters_(kLists + 1, pool_),
        round_counters_(1 + 2 * kMoveTurns, pool_),
        label_degrees_(count_, pool_) {
    start<<<blocks_, kThreads, 0, stream>>>(count_, labels_.data(), sizes_.data());
    check_cuda(cudaMemcpyAsync(label_degrees_.data(), graph.degrees.data(),
                               count_ * sizeof(std::uint64_t), cudaMemcpyDeviceToDevice, stream),
               kWhat);
    moves_ = {.offsets = graph.offsets.data(),
              .neighbours = graph.neighbours.data(),
              .weights = graph.weights.data(),
              .degrees = graph.degrees.data(),
              .communities = count_,
              .by_chance = resolution / static_cast<double>(graph.total),
              .labels = labels_.data(),
              .label_degrees = label_degrees_.data(),
              .label_sizes = sizes_.data(),
              .next = next_.data(),
              .round = 0,
              .turn = 0};
    make_lists(graph);
  }

  DeviceArray<std::uint32_t> run() {
    std::uint64_t before = moves_at_first(count_);
    clear(round_counters_);
    list_turns_of(0);
    read_back(round_counters_.data(), round_counts_, round_counters_.size());
    for (std::uint32_t round = 0; round < kMostMoveRounds; ++round) {
      moves_.round = round;
      for (std::uint32_t turn = 0; turn < kMoveTurns; ++turn) {
        moves_.turn = turn;
        move_at_once();
      }
      const std::uint64_t moves = end_round(round);
      if (few_moves(moves, count_) || hardly_fewer(moves, before)) break;
      before = moves;
    }
    return std::move(labels_);
  }

 private:
  void make_lists(const DeviceQuotient& graph) {
    Lists lists{};
    for (int k = 0; k < kLists; ++k) lists.rows[k] = rows(k);
    lists.counts = counters_.data();
    clear(counters_);
    list_rows<<<blocks_, kThreads, 0, stream_>>>(graph.offsets.data(), count_, lists);
    check_cuda(cudaGetLastError(), kWhat);
    read_back(counters_.data(), counts_, counters_.size());
    check_cuda(cudaFuncSetAttribute(move_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(table_bytes(kLargeSlots))),
               kWhat);
    turns_ = DeviceArray<std::uint32_t>(
        kMoveTurns * (std::uint64_t{counts_[kSmallRows]} + counts_[kLargeRows]), pool_);
    few_giants_ = counts_[kGiantRows] <= kMostGiants;
    if (few_giants_) make_giants();
    const std::uint64_t in_memory =
        std::uint64_t{counts_[kRowsInMemory]} + (few_giants_ ? 0 : counts_[kGiantRows]);
    if (in_memory > 0) make_tables(in_memory);
  }
  void make_giants() {
    giants_.resize(counts_[kGiantRows]);
    if (giants_.empty()) return;
    read_back(rows(kGiantRows), giants_.data(), giants_.size());
    const std::uint64_t at_once = std::min<std::uint64_t>(giants_.size(), kGiantsAtOnce);
    sums_ = DeviceArray<Count>(at_once * count_, pool_);
    clear(sums_);
    best_of_blocks_ = DeviceArray<Best>(at_once * kGiantBlocks, pool_);
  }
  void make_tables(std::uint64_t in_memory) {
    const std::uint64_t labels = std::min(count_, counts_[kLists]);
    require<DoesNotFitError>(labels <= 1u << 30, "{} communities of one row do not fit", labels);
    slots_ = std::bit_ceil(static_cast<std::uint32_t>(labels + labels / 4));
    const std::uint64_t most = std::max<std::uint64_t>(kTablesBytes / table_bytes(slots_), 1);
    table_blocks_ = static_cast<unsigned>(std::min<std::uint64_t>({most, in_memory, 512}));
    tables_ = DeviceArray<std::uint32_t>(table_blocks_ * std::uint64_t{3} * slots_, pool_);
  }

  // Every community whose turn it is looks for the best label, then all of them move.
  void move_at_once() {
    move_short<<<static_cast<unsigned>((std::uint64_t{count_} * kWarp + kThreads - 1) / kThreads),
                 kThreads, 0, stream_>>>(moves_);
    move_in_blocks(kSmallRows, kSmallThreads, kSmallSlots);
    move_in_blocks(kLargeRows, kLargeThreads, kLargeSlots);
    move_by_tables(kRowsInMemory);
    if (few_giants_)
      move_all_giants();
    else
      move_by_tables(kGiantRows);
    set_labels<<<blocks_, kThreads, 0, stream_>>>(moves_, labels_.data(),
                                                  reinterpret_cast<Count*>(label_degrees_.data()),
                                                  sizes_.data(), round_counters_.data());
  }
  void move_in_blocks(List list, int threads, std::uint32_t slots) {
    const std::uint32_t rows = round_counts_[1 + list * kMoveTurns + moves_.turn];
    if (rows > 0)
      move_in_shared<<<rows, threads, table_bytes(slots), stream_>>>(
          moves_, turns_of(list) + moves_.turn * std::uint64_t{counts_[list]}, slots);
  }
  void move_by_tables(List list) {
    if (counts_[list] > 0)
      move_in_memory<<<table_blocks_, kLargeThreads, 0, stream_>>>(
          moves_, rows(list), counts_[list], slots_, tables_.data());
  }
  void move_all_giants() {
    Giants now{.rows = {}, .sums = sums_.data(), .best_of_blocks = best_of_blocks_.data()};
    unsigned count = 0;
    const auto move = [&] {
      const dim3 blocks(kGiantBlocks, count);
      add_giants<<<blocks, kThreads, 0, stream_>>>(moves_, now);
      find_best_of_giants<<<blocks, kThreads, 0, stream_>>>(moves_, now);
      move_giants<<<blocks, kThreads, 0, stream_>>>(moves_, now);
      count = 0;
    };
    for (const std::uint32_t c : giants_) {
      if (turn_of(c, moves_.round) != moves_.turn) continue;
      now.rows[count++] = c;
      if (count == kGiantsAtOnce) move();
    }
    if (count > 0) move();
  }

  // Sorts the small and the large rows by their turns in a round.
  void list_turns_of(std::uint32_t round) {
    check_cuda(cudaMemsetAsync(round_counters_.data() + 1, 0,
                               (round_counters_.size() - 1) * sizeof(std::uint32_t), stream_),
               kWhat);
    list_turns_of(round, kSmallRows);
    list_turns_of(round, kLargeRows);
    check_cuda(cudaGetLastError(), kWhat);
  }
  void list_turns_of(std::uint32_t round, List list) {
    if (counts_[list] == 0) return;
    list_turns<<<(counts_[list] + kThreads - 1) / kThreads, kThreads, 0, stream_>>>(
        rows(list), counts_[list], round, turns_of(list),
        round_counters_.data() + 1 + list * kMoveTurns);
  }
  // Returns the moves of a round. The host waits once, for this number and the next round's lists.
  std::uint64_t end_round(std::uint32_t round) {
    list_turns_of(round + 1);
    read_back(round_counters_.data(), round_counts_, round_counters_.size());
    check_cuda(cudaMemsetAsync(round_counters_.data(), 0, sizeof(std::uint32_t), stream_), kWhat);
    return round_counts_[0];
  }

  static constexpr std::size_t table_bytes(std::size_t slots) {
    return 3 * slots * sizeof(std::uint32_t);
  }
  std::uint32_t* rows(int list) {
    return lists_.data() + static_cast<std::uint64_t>(list) * count_;
  }
  std::uint32_t* turns_of(List list) {
    return turns_.data() +
           (list == kSmallRows ? 0 : kMoveTurns * std::uint64_t{counts_[kSmallRows]});
  }
  template <class T>
  void clear(DeviceArray<T>& array) {
    check_cuda(cudaMemsetAsync(array.data(), 0, array.size() * sizeof(T), stream_), kWhat);
  }
  void read_back(const std::uint32_t* from, std::uint32_t* to, std::size_t count) const {
    check_cuda(
        cudaMemcpyAsync(to, from, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream_),
        kWhat);
    check_cuda(cudaStreamSynchronize(stream_), kWhat);
  }

  cudaStream_t stream_;
  FromPool pool_;
  std::uint32_t count_;  // communities
  unsigned blocks_;
  DeviceArray<std::uint32_t> labels_, next_, sizes_, lists_, turns_, tables_;
  DeviceArray<std::uint32_t> counters_;        // as Lists::counts
  DeviceArray<std::uint32_t> round_counters_;  // moves; small, then large rows by turn
  DeviceArray<std::uint64_t> label_degrees_;
  DeviceArray<Count> sums_;
  DeviceArray<Best> best_of_blocks_;
  Moves moves_{};
  std::uint32_t counts_[kLists + 1] = {}, round_counts_[1 + 2 * kMoveTurns] = {};
  std::vector<std::uint32_t> giants_;
  bool few_giants_ = true;
  std::uint32_t slots_ = 0;  // of a table in memory
  unsigned table_blocks_ = 0;
};

}  // namespace

DeviceArray<std::uint32_t> merge(const DeviceQuotient& graph, double resolution,
                                 cudaStream_t stream) {
  return LocalMoves(graph, resolution, stream).run();
}

}  // namespace plait
