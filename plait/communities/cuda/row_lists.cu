// Rows enter lists in any order, which does not matter: each row chooses for itself.
#include "plait/base/cuda/one_each.cuh"
#include "plait/communities/cuda/gains.cuh"
#include "plait/communities/cuda/on_stream.cuh"
#include "plait/communities/cuda/row_lists.cuh"

namespace plait {
namespace {

struct Lists {
  std::uint32_t* rows[kRowLists];
  std::uint32_t* counts;  // of these, and behind them the longest row
};

__global__ void list_rows(const __grid_constant__ WeightedRows graph, Lists lists) {
  const std::uint64_t row = item_of_thread();
  if (row >= graph.rows) return;
  const EdgeOffset entries = graph.end[row] - graph.begin[row];
  if (entries <= kShort) return;
  // A table is never full: it has a slot for every label, or more than the row has entries.
  const bool small = entries <= kSmallSlots / 2 || graph.count <= kSmallSlots / 2;
  const bool large = entries <= kLargeSlots * 3 / 4 || graph.count <= kLargeSlots;
  const int list = small              ? kSmallRows
                   : large            ? kLargeRows
                   : entries < kGiant ? kRowsInMemory
                                      : kGiantRows;
  lists.rows[list][atomicAdd(lists.counts + list, 1u)] = static_cast<std::uint32_t>(row);
  atomicMax(lists.counts + kRowLists,
            static_cast<std::uint32_t>(min(entries, EdgeOffset{0xffffffffu})));
}

// Sorts the rows of a list by their turn: lists[turn * count] ff. has those of a turn.
__global__ void list_turns(const __grid_constant__ Moves m, const std::uint32_t* rows,
                           std::uint32_t count, std::uint32_t* lists, std::uint32_t* counts) {
  const std::uint64_t i = item_of_thread();
  const std::uint32_t row = i < count ? rows[i] : 0, lane = threadIdx.x % kWarp;
  const std::uint32_t mine = i < count ? m.turn_of_row(row) : kMoveTurns;
  for (std::uint32_t turn = 0; turn < kMoveTurns; ++turn) {
    const unsigned same = __ballot_sync(kAll, mine == turn);
    std::uint32_t begin = 0;
    if (lane == 0 && same != 0)
      begin = atomicAdd(counts + turn, static_cast<std::uint32_t>(__popc(same)));
    begin = __shfl_sync(kAll, begin, 0);
    if (mine == turn)
      lists[turn * std::uint64_t{count} + begin + __popc(same & lanes_before())] = row;
  }
}

}  // namespace

RowLists::RowLists(const WeightedRows& graph, cudaStream_t stream)
    : stream_(stream),
      all_(graph.rows),
      rows_(array_of<std::uint32_t>(std::uint64_t{kRowLists} * graph.rows, stream)) {
  auto counts = zeros_of<std::uint32_t>(kRowLists + 1, stream);
  Lists lists{};
  for (int k = 0; k < kRowLists; ++k)
    lists.rows[k] = rows_.data() + static_cast<std::uint64_t>(k) * graph.rows;
  lists.counts = counts.data();
  if (graph.rows > 0)
    list_rows<<<blocks_of_items(graph.rows), kThreadsOfItems, 0, stream>>>(graph, lists);
  check_launch();
  read_back(counts.data(), counts_, kRowLists + 1, stream);
  turns_ = array_of<std::uint32_t>(
      kMoveTurns * (std::uint64_t{counts_[kSmallRows]} + counts_[kLargeRows]), stream);
}

void RowLists::sort_by_turn(const Moves& moves, RoundCounts* counts) {
  check_cuda(cudaMemsetAsync(counts->rows, 0, sizeof(counts->rows), stream_), kFindingCommunities);
  for (const RowList list : {kSmallRows, kLargeRows})
    if (size(list) > 0)
      list_turns<<<blocks_of_items(size(list)), kThreadsOfItems, 0, stream_>>>(
          moves, rows(list), size(list), turns_.data() + turns_begin(list), counts->rows[list]);
  check_launch();
}

}  // namespace plait
