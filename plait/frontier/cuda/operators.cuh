// The operators of ../operators.h on a GPU, on the default stream. The host waits where a member
// returns a number, and at the end of a frontier's steps.
#pragma once

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <memory>
#include <span>
#include <vector>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/pinned_array.cuh"
#include "plait/base/cuda/upload.cuh"
#include "plait/communities/cuda/on_gpu.cuh"
#include "plait/frontier/cuda/edge_sums.cuh"
#include "plait/frontier/cuda/intersect.cuh"
#include "plait/frontier/cuda/kernels.cuh"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap.cuh"
#include "plait/symmetric/peer_access.h"
#include "plait/world/gather.h"

namespace plait {

class GpuOperators {
 public:
  template <class T>
  using Values = DeviceArray<T>;
  using Communities = CommunitiesOnGpu;
  class Frontier;

  // The graph is on the current GPU, and outlives the operators.
  explicit GpuOperators(SpreadGraph& graph)
      : graph_(graph), first_out_(std::span<const EdgeOffset>(graph.inward())), sum_(1) {
    const SlotEdges all = view_of(graph, nullptr).all;
    for_rows(first_out_.size(), frontier::Add{first_out_.data(), all.begin});
    view_ = view_of(graph, graph.symmetric() ? nullptr : first_out_.data());
    told_.reserve(1);
    if (view_.own > 0) copy_to_host(&own_edges_, all.end + view_.own - 1, sizeof own_edges_);
  }

  const GraphView& view() const { return view_; }
  World& world() const { return graph_.world(); }
  SpreadGraph& graph() const { return graph_; }

  template <class T>
  Values<T> slots(T value) const {
    return array<T>(view_.slots, value);
  }
  template <class T>
  Values<T> array(std::uint64_t size, T value) const {
    Values<T> values(size, FromPool().scratch());
    fill(values, value);
    return values;
  }
  template <class T>
  void fill(Values<T>& values, T value) const {
    for_rows(values.size(), frontier::Fill<T>{values.data(), value});
  }
  template <class T>
  Values<T> array(std::span<const T> values) const {
    return Values<T>(values);
  }
  template <class T>
  std::vector<T> first(const Values<T>& values, std::uint64_t count) const {
    std::vector<T> first(count);
    download(first.data(), values.data(), count * sizeof(T));
    return first;
  }
  template <class T>
  void set(Values<T>& values, std::uint64_t i, T value) const {
    copy_to_gpu(values.data() + i, &value, sizeof(T));
  }
  template <class T>
  T get(const Values<T>& values, std::uint64_t i) const {
    T value;
    copy_to_host(&value, values.data() + i, sizeof(T));
    return value;
  }

  template <class F>
  void for_rows(std::uint64_t count, const F& f) const {
    if (count == 0) return;
    // Threads begin in the order of rows, as work may build on what other threads do for rows
    // before.
    const std::uint64_t blocks = (count + frontier::kThreads - 1) / frontier::kThreads;
    frontier::for_rows<<<static_cast<unsigned>(blocks), frontier::kThreads>>>(count, f);
    check_cuda(cudaGetLastError(), "work on rows");
  }
  template <class F>
  std::uint64_t sum(std::uint64_t count, const F& f) const {
    return folded<frontier::Sum>(count, f);
  }
  template <class F>
  std::uint64_t greatest(std::uint64_t count, const F& f) const {
    return folded<frontier::Greatest>(count, f);
  }
  void wait() const {
    check_cuda(cudaStreamSynchronize(nullptr), "work on the GPU");
    graph_.exchange().check();
  }

  template <class T, class F, class G>
  TwoSums sum_edges(const SlotEdges& edges, const F& f, const G& g) const {
    // A long row has an edge more than a piece.
    const std::uint64_t most = 2 * (own_edges_ / kSumPiece + 1);
    DeviceArray<std::uint64_t> pieces(most, FromPool().scratch());
    DeviceArray<T> of_pieces(most, FromPool().scratch());
    auto counts = array<std::uint64_t>(3, 0);  // of pieces, and the sums
    const frontier::EdgeSums<T, F, G> sums{edges,
                                           view_.own,
                                           f,
                                           g,
                                           {pieces.data(), counts.data()},
                                           of_pieces.data(),
                                           reinterpret_cast<TwoSums*>(counts.data() + 1)};
    if (view_.own > 0) {
      const unsigned all = blocks(view_.own * kSumLanes), few = std::min(all, kManyBlocks);
      frontier::sum_rows_of_edges<<<all, frontier::kThreads>>>(sums);
      frontier::sum_pieces<<<few, frontier::kThreads>>>(sums);
      frontier::sum_long_rows<<<few, frontier::kThreads>>>(sums);
    }
    check_cuda(cudaGetLastError(), "sums of edges");
    TwoSums found;
    copy_to_host(&found, sums.sums, sizeof found);
    return found;
  }

  template <class P>
  void keep(const SlotEdges& edges, const P& p, Kept<GpuOperators>& kept) const {
    const auto scratch = FromPool().scratch();
    auto flags = array<std::uint8_t>(own_edges_, 0);
    auto count = array<std::uint64_t>(1, 0);
    if (kept.begin.size() == 0) kept.begin = Values<std::uint64_t>(view_.own + 1, scratch);
    std::uint64_t* const begin = kept.begin.data();
    fill(kept.begin, std::uint64_t{0});
    const std::uint64_t size = sum_edges<std::uint64_t>(edges, frontier::Flag<P>{p, flags.data()},
                                                        frontier::KeepSum{begin})
                                   .first;
    with_scratch("kept edges", scratch, [&](void* memory, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(memory, bytes, begin, begin, view_.own + 1);
    });
    if (kept.slots.size() != size) kept.slots = Values<Slot>(size, scratch);
    if (size == 0) return;
    with_scratch("kept edges", scratch, [&](void* memory, std::size_t& bytes) {
      return cub::DeviceSelect::Flagged(memory, bytes, edges.slots, flags.data(), kept.slots.data(),
                                        count.data(), own_edges_);
    });
  }

  template <class T>
  void pull(Values<T>& values) const {
    if (world().size() == 1) return;
    const std::span all(values.data(), values.size());
    const std::uint64_t own = view_.own;
    graph_.exchange().gather(
        Direction::along, values.data(), sizeof(T),
        {.work =
             [&](const EdgeRows& rows) {
               const float* const from = rows.x.base + own * rows.x.stride;
               for_rows(view_.slots - own,
                        frontier::Pull<T>{values.data() + own, from, rows.x.stride});
             },
         .results = {std::as_writable_bytes(all)}});
  }

  template <class T>
  void push(Values<T>& values, Merge how) const {
    if (world().size() == 1) return;
    DeviceArray<std::uint32_t> marks(mark_words(view_.slots), FromPool().scratch());
    for_rows(marks.size(), frontier::MarkHalo{view_, marks.data()});
    graph_.messages().push(std::span(values.data(), values.size()), {marks.data(), marks.size()},
                           how);
  }

  template <class T, class Use>
  void lend(Values<T>& values, const Use& use) const {
    if (world().size() == 1) return use(0, values.data());
    const std::uint64_t mine = values.size() * sizeof(T);
    const std::vector<std::uint64_t> sizes = gather_values(world(), mine);
    const std::uint64_t most = std::max<std::uint64_t>(std::ranges::max(sizes), 1);
    if (!lent_ || lent_->bytes() < most)
      DeviceHeap::replace(
          world(), lent_, most,
          unreached_peer(world()).empty() ? DeviceTransport::vmm : DeviceTransport::host);
    DeviceArray<T> theirs;
    on_all_or_none(world(), [&] {
      theirs = DeviceArray<T>(most / sizeof(T), FromPool().scratch());
      copy(lent_->part(world().rank()), values.data(), mine);
      check_cuda(cudaStreamSynchronize(nullptr), "lent values");
    });
    // Each rank begins with its own values, so that no two read those of the same rank at once.
    for (int k = 0; k < world().size(); ++k) {
      const int rank = (world().rank() + k) % world().size();
      if (k > 0) copy(theirs.data(), lent_->part(rank), sizes[static_cast<std::size_t>(rank)]);
      use(rank, k > 0 ? theirs.data() : values.data());
    }
    check_cuda(cudaStreamSynchronize(nullptr), "lent values");
    world().barrier();  // all have read them
  }

  template <class F>
  void intersect(const SlotLists& lists, const LentEntries& lent, const F& f) const {
    if (view_.own == 0) return;
    const std::uint64_t count = sum(view_.own, frontier::CountPieces{lists.places});
    DeviceArray<std::uint64_t> pieces(count, FromPool().scratch());
    auto listed = array<std::uint64_t>(1, 0);
    const frontier::Intersection<F> work{lists, lent, view_.own, f, {pieces.data(), listed.data()}};
    frontier::intersect_rows<<<blocks(view_.own * kWarp), frontier::kThreads>>>(work);
    // A block per piece, so that it begins when another has ended.
    if (count > 0)
      frontier::intersect_pieces<<<static_cast<unsigned>(std::min(count, std::uint64_t{1} << 30)),
                                   frontier::kThreads>>>(work);
    check_cuda(cudaGetLastError(), "intersections of lists");
  }

  Frontier frontier(const SlotEdges& edges) const;

  // The edges of own rows in both directions.
  EdgeOffset own_edges() const { return own_edges_; }
  static constexpr unsigned kManyBlocks = 132 * 8;  // for the multiprocessors of an H100
  static unsigned blocks(std::uint64_t threads) {
    constexpr std::uint64_t kMost = 132 * 16;  // for the multiprocessors of an H100
    return static_cast<unsigned>(std::clamp<std::uint64_t>(
        (threads + frontier::kThreads - 1) / frontier::kThreads, 1, kMost));
  }

 private:
  static void copy(void* to, const void* from, std::size_t bytes) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault), "lent values");
  }
  template <class Fold, class F>
  std::uint64_t folded(std::uint64_t count, const F& f) const {
    check_cuda(cudaMemsetAsync(sum_.data(), 0, sizeof(std::uint64_t)), "a sum");
    if (count > 0)
      frontier::fold_rows<Fold><<<blocks(count), frontier::kThreads>>>(count, f, sum_.data());
    check_cuda(cudaGetLastError(), "a sum");
    return get(sum_, 0);
  }

  SpreadGraph& graph_;
  DeviceArray<EdgeOffset> first_out_;
  mutable DeviceArray<std::uint64_t> sum_;
  mutable PinnedArray<frontier::State> told_;  // for copies to the host
  mutable std::unique_ptr<DeviceHeap> lent_;   // the values that ranks lend each other
  EdgeOffset own_edges_ = 0;
  GraphView view_;
};

class GpuOperators::Frontier {
 public:
  Frontier(const GpuOperators& operators, const SlotEdges& edges)
      : on_(operators),
        edges_(edges),
        marks_(operators.array<std::uint32_t>(mark_words(operators.view().slots), 0)),
        bits_(operators.array<std::uint32_t>(marks_.size(), 0)),
        rows_(operators.view().own, FromPool().scratch()),
        pieces_(most_pieces(operators), FromPool().scratch()),
        state_(operators.array<frontier::State>(1, {})) {}

  void clear() {
    known_ = {};
    step_ = 0;
    on_.fill(marks_, 0u);  // an advance that has failed may have left some
    bits_are_known_ = false;
  }
  void add(std::uint64_t row) {
    EdgeOffset ends[2];
    copy_to_host(ends, edges_.begin + row, sizeof(EdgeOffset));
    copy_to_host(ends + 1, edges_.end + row, sizeof(EdgeOffset));
    const auto number = static_cast<std::uint32_t>(row);
    copy_to_gpu(rows_.data() + known_.rows, &number, sizeof number);
    ++known_.rows;
    known_.edges += ends[1] - ends[0];
    bits_are_known_ = false;
    copy_to_gpu(state_.data(), &known_, sizeof(frontier::State));
  }
  template <class P>
  void fill(const P& p) {
    if (on_.view().own > 0)
      frontier::mark_rows<<<blocks(on_.view().own), frontier::kThreads>>>(on_.view().own, p,
                                                                          marks_.data());
    take_marks();
  }
  template <class P>
  void fill(const Frontier& from, const P& p) {
    on_.for_rows(from.known_.rows, frontier::MarkOf<P>{from.rows_.data(), marks_.data(), p});
    take_marks();
  }
  FrontierTotals totals() const {
    std::uint64_t counts[2] = {known_.rows, known_.edges};
    if (on_.world().size() > 1) on_.world().all_reduce_sum(std::span(counts));
    return {counts[0], counts[1]};
  }
  std::uint64_t step() const { return step_; }

  template <class F>
  void for_edges(const F& f) {
    visit(frontier::Each<F>{edges_.slots, f});
  }

  template <class T, class F>
  void advance(const F& f, DeviceArray<T>& values, Merge how) {
    if (on_.world().size() == 1 && known_.edges <= kFewEdges && known_.rows <= kFewRows)
      return advance_alone(f);
    ++step_;
    visit(frontier::Advance<F>{edges_.slots, marks_.data(), f});
    if (on_.world().size() > 1)
      on_.graph().messages().push(std::span(values.data(), values.size()),
                                  {marks_.data(), marks_.size()}, how);
    take_marks();
  }

  template <class P, class Take>
  void meet(const SlotEdges& edges, const P& p, const Take& take) {
    ++step_;
    find_bits();
    const std::uint64_t own = on_.view().own;
    if (own > 0) {
      const frontier::Meeting<P, Take> meeting{edges, bits_.data(), p, take};
      const frontier::Pieces long_rows = no_pieces();
      frontier::meet_rows<<<blocks(own), frontier::kThreads>>>(own, meeting, marks_.data(),
                                                               long_rows);
      frontier::meet_long_rows<<<kManyBlocks, frontier::kThreads>>>(meeting, marks_.data(),
                                                                    long_rows);
    }
    take_marks();
  }

 private:
  static constexpr unsigned kManyBlocks = GpuOperators::kManyBlocks;

  static unsigned blocks(std::uint64_t threads) { return GpuOperators::blocks(threads); }
  // A long row has an edge more than a piece.
  static std::uint64_t most_pieces(const GpuOperators& on) {
    return 2 * (on.own_edges() / kLongRow + 1);
  }
  // Returns an empty list of pieces.
  frontier::Pieces no_pieces() {
    std::uint64_t* const count = &state_.data()->pieces;
    check_cuda(cudaMemsetAsync(count, 0, sizeof *count), "a frontier");
    return {pieces_.data(), count};
  }

  template <class Visit>
  void visit(const Visit& visit) {
    if (known_.rows == 0) return;
    const std::uint64_t at_once = std::clamp<std::uint64_t>(
        kLongRow * known_.rows / std::max<std::uint64_t>(known_.edges, 1), 1, frontier::kThreads);
    const auto tiles = static_cast<unsigned>(
        std::min<std::uint64_t>((known_.rows + at_once - 1) / at_once, std::uint64_t{1} << 20));
    const frontier::Pieces pieces = no_pieces();
    frontier::visit_rows<<<tiles, frontier::kThreads>>>(
        edges_, rows_.data(), known_.rows, static_cast<std::uint32_t>(at_once), visit, pieces);
    frontier::visit_pieces<<<kManyBlocks, frontier::kThreads>>>(edges_, pieces, visit);
    check_cuda(cudaGetLastError(), "a frontier");
  }

  template <class F>
  void advance_alone(const F& f) {
    if (known_.rows == 0) return void(++step_);
    constexpr std::uint64_t kMost = 1 << 16;  // steps, so that the host can be interrupted
    frontier::advance_small<<<1, frontier::kSmallThreads>>>(edges_, f, rows_.data(), marks_.data(),
                                                            state_.data(), kMost);
    tell();
    step_ += known_.steps;
    bits_are_known_ = false;
  }

  // Makes the marked own rows the frontier. Its marks become its bits.
  void take_marks() {
    std::swap(marks_, bits_);
    bits_are_known_ = true;
    check_cuda(cudaMemsetAsync(marks_.data(), 0, marks_.size() * sizeof(std::uint32_t)),
               "a frontier");
    check_cuda(cudaMemsetAsync(state_.data(), 0, sizeof(frontier::State)), "a frontier");
    const std::uint64_t own = on_.view().own;
    if (own > 0)
      frontier::append_rows<<<blocks(mark_words(own)), frontier::kThreads>>>(
          {rows_.data(), state_.data()}, bits_.data(), edges_, own);
    tell();
  }

  // Collective. Sets the bits of the frontiers of all ranks, as far as slots lead there.
  void find_bits() {
    const std::uint64_t own = on_.view().own, slots = on_.view().slots;
    if (!bits_are_known_) {
      on_.fill(bits_, 0u);
      on_.for_rows(known_.rows, frontier::SetBits{rows_.data(), bits_.data()});
    }
    if (on_.world().size() == 1) return;
    if (flags_.size() == 0) flags_ = on_.slots(0u);
    on_.for_rows(own, frontier::SpreadBits{bits_.data(), flags_.data()});
    on_.pull(flags_);
    on_.for_rows(mark_words(slots), frontier::PackBits{flags_.data(), slots, bits_.data()});
    bits_are_known_ = false;
  }

  void tell() {
    check_cuda(cudaGetLastError(), "a frontier");
    frontier::State* const told = on_.told_.data();
    check_cuda(cudaMemcpyAsync(told, state_.data(), sizeof *told, cudaMemcpyDeviceToHost),
               "a frontier");
    check_cuda(cudaStreamSynchronize(nullptr), "a frontier");
    known_ = *told;
  }

  const GpuOperators& on_;
  const SlotEdges edges_;
  DeviceArray<std::uint32_t> marks_;  // by slot; none between calls
  DeviceArray<std::uint32_t> bits_;   // by slot: of the frontier, if they are known
  bool bits_are_known_ = false;
  DeviceArray<std::uint32_t> flags_;   // by slot: bits of several ranks, while they are pulled
  DeviceArray<std::uint32_t> rows_;    // the queue
  DeviceArray<std::uint64_t> pieces_;  // of long rows
  DeviceArray<frontier::State> state_;
  frontier::State known_ = {};  // the state as the host knows it
  std::uint64_t step_ = 0;
};

inline GpuOperators::Frontier GpuOperators::frontier(const SlotEdges& edges) const {
  return {*this, edges};
}

}  // namespace plait
