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

__global__ void start(std::uint32_t communities, std::uint32_t* labels, std::uint32_t* sizes) {
  const std::uint64_t c = item_of_thread();
  if (c < communities) labels[c] = static_cast<std::uint32_t>(c), sizes[c] = 1;
}

// Gives communities whose turn it is the labels that they have chosen, and counts those that move.
__global__ void set_labels(const __grid_constant__ Moves m, std::uint32_t* labels, Count* degrees,
                           std::uint32_t* sizes, std::uint32_t* moves) {
  const std::uint64_t number = item_of_thread();
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
        count_(graph.communities),
        labels_(array_of<std::uint32_t>(count_, stream)),
        next_(array_of<std::uint32_t>(count_, stream)),
        sizes_(array_of<std::uint32_t>(count_, stream)),
        label_degrees_(array_of<std::uint64_t>(count_, stream)),
        round_(zeros_of<RoundCounts>(1, stream)),
        lists_(graph.offsets.data(), count_, stream),
        few_giants_(lists_.size(kGiantRows) <= kMostGiants),
        giants_(lists_.rows(kGiantRows), few_giants_ ? lists_.size(kGiantRows) : 0, count_, stream),
        tables_(rows_in_memory(), labels_in_memory(), stream) {
    start<<<blocks_of_items(count_), kThreadsOfItems, 0, stream>>>(count_, labels_.data(),
                                                                   sizes_.data());
    check_launch();
    check_cuda(cudaMemcpyAsync(label_degrees_.data(), graph.degrees.data(),
                               count_ * sizeof(std::uint64_t), cudaMemcpyDeviceToDevice, stream),
               kFindingCommunities);
    allow_large_tables();
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
  }

  DeviceArray<std::uint32_t> run() {
    std::uint64_t before = moves_at_first(count_);
    end_round(0);
    for (std::uint32_t round = 0; round < kMostMoveRounds; ++round) {
      moves_.round = round;
      for (std::uint32_t turn = 0; turn < kMoveTurns; ++turn) {
        moves_.turn = turn;
        move_at_once();
      }
      const std::uint64_t moves = end_round(round + 1);
      if (few_moves(moves, count_) || hardly_fewer(moves, before)) break;
      before = moves;
    }
    return std::move(labels_);
  }

 private:
  // Rows that take tables in the GPU's memory.
  std::uint64_t rows_in_memory() const {
    return std::uint64_t{lists_.size(kRowsInMemory)} + (few_giants_ ? 0 : lists_.size(kGiantRows));
  }
  // The most labels of such a row.
  std::uint32_t labels_in_memory() const {
    const std::uint32_t longest = lists_.longest();
    const auto giant = static_cast<std::uint32_t>(kGiant);
    return std::min(count_, few_giants_ ? std::min(longest, giant) : longest);
  }

  // Every community whose turn it is looks for the best label, then all of them move.
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
    set_labels<<<blocks_of_items(count_), kThreadsOfItems, 0, stream_>>>(
        moves_, labels_.data(), counts_in(label_degrees_), sizes_.data(), &round_.data()->moves);
  }

  // Returns the moves of the round that ends, and lists rows for the next one. The host waits once
  // for both.
  std::uint64_t end_round(std::uint32_t next) {
    lists_.sort_by_turn(next, round_.data());
    counts_ = read_back(round_.data(), stream_);
    check_cuda(cudaMemsetAsync(&round_.data()->moves, 0, sizeof(counts_.moves), stream_),
               kFindingCommunities);
    return counts_.moves;
  }

  cudaStream_t stream_;
  std::uint32_t count_;  // communities
  DeviceArray<std::uint32_t> labels_, next_, sizes_;
  DeviceArray<std::uint64_t> label_degrees_;
  DeviceArray<RoundCounts> round_;
  RowLists lists_;
  bool few_giants_;
  GiantRows giants_;
  RowTables tables_;
  Moves moves_{};
  RoundCounts counts_{};
};

}  // namespace

DeviceArray<std::uint32_t> merge(const DeviceQuotient& graph, double resolution,
                                 cudaStream_t stream) {
  return LocalMoves(graph, resolution, stream).run();
}

}  // namespace plait
