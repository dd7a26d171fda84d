// Local moves (communities/moves.h) on the GPU. A round has turns, in which the communities whose
// turn it is choose labels at once and then move. How many threads look at a row follows from its
// length: a warp or a block (move_rows.cu), or many blocks if it is one of few giants
// (giant_rows.cu).
#include <algorithm>

#include "plait/base/cuda/one_each.cuh"
#include "plait/communities/cuda/gains.cuh"
#include "plait/communities/cuda/giant_rows.cuh"
#include "plait/communities/cuda/move_rows.cuh"
#include "plait/communities/cuda/on_stream.cuh"
#include "plait/communities/cuda/quotient.cuh"
#include "plait/communities/cuda/row_lists.cuh"

namespace plait {
namespace {

// What becomes of vertices that move. Pointers are to memory of the GPU.
struct Moved {
  const std::uint64_t* degrees;  // by vertex
  std::uint32_t* labels;         // by vertex
  Count* label_degrees;          // by label
  std::uint32_t* label_sizes;    // by label
  std::uint8_t* moved;           // by vertex: 1 for those of this round; or null

  __device__ void set_label(std::uint32_t vertex, std::uint32_t to) const {
    const std::uint32_t from = labels[vertex];
    const auto degree = static_cast<Count>(degrees[vertex]);
    atomicAdd(label_degrees + from, ~degree + 1);  // takes away
    atomicAdd(label_degrees + to, degree);
    atomicSub(label_sizes + from, 1u);
    atomicAdd(label_sizes + to, 1u);
    labels[vertex] = to;
    if (moved != nullptr) moved[vertex] = 1;
  }
};

__global__ void start_alone(std::uint32_t count, std::uint32_t* labels, std::uint32_t* sizes) {
  const std::uint64_t v = item_of_thread();
  if (v < count) labels[v] = static_cast<std::uint32_t>(v), sizes[v] = 1;
}

// Adds vertices to the communities in which they begin.
__global__ void start_together(std::uint32_t count, const std::uint64_t* vertex_degrees,
                               const std::uint32_t* labels, Count* degrees, std::uint32_t* sizes) {
  const std::uint64_t v = item_of_thread();
  const bool any = v < count;
  const std::uint32_t label = any ? labels[v] : kNoLabel;
  const unsigned same = __match_any_sync(kAll, label);
  if (!any) return;
  atomicAdd(degrees + label, static_cast<Count>(vertex_degrees[v]));
  if ((same & lanes_before()) == 0) atomicAdd(sizes + label, static_cast<unsigned>(__popc(same)));
}

// Gives vertices whose turn it is the labels that they have chosen, and counts those that move.
__global__ void set_labels(const __grid_constant__ Moves m, const __grid_constant__ Moved to,
                           std::uint32_t* moves) {
  const std::uint64_t number = item_of_thread();
  const auto row = static_cast<std::uint32_t>(number);
  const bool turn = number < m.graph.rows && m.moves(row);
  const std::uint32_t vertex = turn ? m.graph.vertex(row) : 0;
  const bool moved = turn && m.next[row] != m.labels[vertex];
  const unsigned all = __ballot_sync(kAll, moved);
  if (threadIdx.x % kWarp == 0 && all != 0) atomicAdd(moves, static_cast<unsigned>(__popc(all)));
  if (moved) to.set_label(vertex, m.next[row]);
}

// Lists the moves that set_labels() would make.
__global__ void list_moves(const __grid_constant__ Moves m, Move* list, std::uint32_t* moves) {
  const std::uint64_t number = item_of_thread();
  const auto row = static_cast<std::uint32_t>(number);
  if (number >= m.graph.rows || !m.moves(row)) return;
  const std::uint32_t vertex = m.graph.vertex(row);
  if (m.next[row] != m.labels[vertex]) list[atomicAdd(moves, 1u)] = {vertex, m.next[row]};
}

__global__ void make_moves(const Move* list, std::uint64_t count,
                           const __grid_constant__ Moved to) {
  const std::uint64_t i = item_of_thread();
  if (i < count) to.set_label(list[i].vertex, list[i].label);
}

// Lets rows sleep none of whose neighbours has moved. A warp looks at one row.
__global__ void wake_rows(const __grid_constant__ WeightedRows graph, const std::uint8_t* moved,
                          std::uint8_t* asleep) {
  const std::uint64_t row = item_of_thread() / kWarp;
  if (row >= graph.rows) return;
  const EdgeOffset begin = graph.begin[row], end = graph.end[row];
  bool any = end - begin > kMostToWake;
  for (EdgeOffset e = begin; e < end && !any; e += kWarp) {
    const EdgeOffset mine = e + threadIdx.x % kWarp;
    any = __any_sync(kAll, mine < end && moved[graph.neighbours[mine]] != 0);
  }
  if (threadIdx.x % kWarp == 0) asleep[row] = !any;
}

class LocalMoves {
 public:
  LocalMoves(const WeightedRows& graph, const MoveRules& rules, cudaStream_t stream)
      : stream_(stream),
        graph_(graph),
        rules_(rules),
        labels_(array_of<std::uint32_t>(graph.count, stream)),
        next_(array_of<std::uint32_t>(graph.rows, stream)),
        sizes_(array_of<std::uint32_t>(graph.count, stream)),
        label_degrees_(array_of<std::uint64_t>(graph.count, stream)),
        round_(zeros_of<RoundCounts>(1, stream)),
        lists_(graph, stream),
        few_giants_(lists_.size(kGiantRows) <= kMostGiants),
        giants_(graph, lists_.rows(kGiantRows), few_giants_ ? lists_.size(kGiantRows) : 0, stream),
        tables_(rows_in_memory(), labels_in_memory(), stream) {
    start();
    allow_large_tables();
    if (rules.only_woken) {
      moved_ = zeros_of<std::uint8_t>(graph.count, stream);
      asleep_ = array_of<std::uint8_t>(graph.rows, stream);
    }
    if (rules.share) list_ = array_of<Move>(graph.rows, stream);
    moves_ = {.graph = graph,
              .by_chance = rules.resolution / static_cast<double>(graph.total),
              .labels = labels_.data(),
              .label_degrees = label_degrees_.data(),
              .label_sizes = sizes_.data(),
              .asleep = nullptr,
              .may_leave = rules.may_leave,
              .within = rules.within,
              .next = next_.data(),
              .round = 0,
              .turn = 0};
    to_ = {.degrees = graph.degrees,
           .labels = labels_.data(),
           .label_degrees = counts_in(label_degrees_),
           .label_sizes = sizes_.data(),
           .moved = moved_.data()};
  }

  DeviceArray<std::uint32_t> run() {
    const std::uint64_t movable = rules_.movable > 0 ? rules_.movable : graph_.count;
    std::uint64_t before = moves_at_first(graph_.count);
    begin_round(0);
    for (std::uint32_t round = 0; round < kMostMoveRounds; ++round) {
      shared_moves_ = 0;
      for (std::uint32_t turn = 0; turn < kMoveTurns; ++turn) {
        moves_.turn = turn;
        move_at_once();
      }
      const std::uint64_t moves = begin_round(round + 1);
      if (few_moves(moves, movable, rules_.least_share) || hardly_fewer(moves, before)) break;
      before = moves;
    }
    return std::move(labels_);
  }

 private:
  void start() {
    const unsigned blocks = blocks_of_items(graph_.count);
    if (rules_.start == nullptr) {
      start_alone<<<blocks, kThreadsOfItems, 0, stream_>>>(graph_.count, labels_.data(),
                                                           sizes_.data());
      copy_within(label_degrees_, graph_.degrees);
      return;
    }
    clear(label_degrees_, stream_);
    clear(sizes_, stream_);
    copy_within(labels_, rules_.start);
    start_together<<<blocks, kThreadsOfItems, 0, stream_>>>(
        graph_.count, graph_.degrees, labels_.data(), counts_in(label_degrees_), sizes_.data());
    check_launch();
  }
  template <class T>
  void copy_within(DeviceArray<T>& to, const T* from) const {
    check_cuda(
        cudaMemcpyAsync(to.data(), from, to.size() * sizeof(T), cudaMemcpyDeviceToDevice, stream_),
        kFindingCommunities);
  }

  // Rows that take tables in the GPU's memory.
  std::uint64_t rows_in_memory() const {
    return std::uint64_t{lists_.size(kRowsInMemory)} + (few_giants_ ? 0 : lists_.size(kGiantRows));
  }
  // The most labels of such a row.
  std::uint32_t labels_in_memory() const {
    const std::uint32_t longest = lists_.longest();
    const auto giant = static_cast<std::uint32_t>(kGiant);
    return std::min(graph_.count, few_giants_ ? std::min(longest, giant) : longest);
  }

  // Every row whose turn it is looks for the best label, then all of them move.
  void move_at_once() {
    move_short_rows(moves_, stream_);
    for (const RowList list : {kSmallRows, kLargeRows})
      move_listed_rows(moves_, list, lists_.rows_of_turn(list, moves_.turn),
                       counts_.rows[list][moves_.turn], stream_);
    tables_.move(moves_, lists_.rows(kRowsInMemory), lists_.size(kRowsInMemory));
    if (few_giants_)
      giants_.move(moves_);
    else
      tables_.move(moves_, lists_.rows(kGiantRows), lists_.size(kGiantRows));
    std::uint32_t* const count = &round_.data()->moves;
    const unsigned blocks = blocks_of_items(graph_.rows);
    if (graph_.rows > 0 && rules_.share)
      list_moves<<<blocks, kThreadsOfItems, 0, stream_>>>(moves_, list_.data(), count);
    else if (graph_.rows > 0)
      set_labels<<<blocks, kThreadsOfItems, 0, stream_>>>(moves_, to_, count);
    check_launch();
    if (rules_.share) share_moves();
  }

  void share_moves() {
    std::vector<Move> mine(read_back(&round_.data()->moves, stream_));
    read_back(list_.data(), mine.data(), mine.size(), stream_);
    check_cuda(cudaMemsetAsync(&round_.data()->moves, 0, sizeof(counts_.moves), stream_),
               kFindingCommunities);
    const std::vector<Move> all = rules_.share(mine);
    shared_moves_ += all.size();
    if (all.empty()) return;
    const DeviceArray<Move> list{std::span<const Move>(all)};
    make_moves<<<blocks_of_items(all.size()), kThreadsOfItems, 0, stream_>>>(list.data(),
                                                                             all.size(), to_);
    check_launch();
    check_cuda(cudaStreamSynchronize(stream_), kFindingCommunities);  // the list is in use
  }

  // Returns the moves of the round that ends, and lists rows for the next one. The host waits once
  // for both.
  std::uint64_t begin_round(std::uint32_t next) {
    moves_.round = next;
    if (rules_.only_woken && next > 0) {
      moves_.asleep = asleep_.data();
      if (graph_.rows > 0)
        wake_rows<<<blocks_of_items(std::uint64_t{graph_.rows} * kWarp), kThreadsOfItems, 0,
                    stream_>>>(graph_, moved_.data(), asleep_.data());
      clear(moved_, stream_);
    }
    lists_.sort_by_turn(moves_, round_.data());
    counts_ = read_back(round_.data(), stream_);
    check_cuda(cudaMemsetAsync(&round_.data()->moves, 0, sizeof(counts_.moves), stream_),
               kFindingCommunities);
    return rules_.share ? shared_moves_ : counts_.moves;
  }

  cudaStream_t stream_;
  const WeightedRows graph_;
  const MoveRules& rules_;
  DeviceArray<std::uint32_t> labels_, next_, sizes_;
  DeviceArray<std::uint64_t> label_degrees_;
  DeviceArray<std::uint8_t> moved_, asleep_;
  DeviceArray<Move> list_;
  DeviceArray<RoundCounts> round_;
  RowLists lists_;
  bool few_giants_;
  GiantRows giants_;
  RowTables tables_;
  Moves moves_{};
  Moved to_{};
  RoundCounts counts_{};
  std::uint64_t shared_moves_ = 0;  // of all ranks, in this round
};

}  // namespace

DeviceArray<std::uint32_t> local_moves(const WeightedRows& graph, const MoveRules& rules,
                                       cudaStream_t stream) {
  return LocalMoves(graph, rules, stream).run();
}

DeviceArray<std::uint32_t> merge(const DeviceQuotient& graph, double resolution,
                                 cudaStream_t stream) {
  MoveRules rules;
  rules.resolution = resolution;
  return local_moves(graph.rows(), rules, stream);
}

}  // namespace plait
