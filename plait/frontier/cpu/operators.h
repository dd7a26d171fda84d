// The operators of ../operators.h on the CPU, by the threads of a rank.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "plait/base/lower_bound.h"
#include "plait/base/parallel.h"
#include "plait/base/raw_vector.h"
#include "plait/communities/on_cpu.h"
#include "plait/frontier/cpu/intersect.h"
#include "plait/frontier/edge_sums.h"
#include "plait/frontier/graph.h"
#include "plait/frontier/operators.h"
#include "plait/frontier/shared_value.h"
#include "plait/world/gather.h"

namespace plait {

class CpuOperators {
 public:
  template <class T>
  using Values = Buffer<T>;
  using Communities = CommunitiesOnCpu;
  class Frontier;

  // The graph is on the CPU, and outlives the operators.
  explicit CpuOperators(SpreadGraph& graph) : graph_(graph), first_out_(graph.inward()) {
    const SlotEdges all = view_of(graph, nullptr).all;
    for_rows(first_out_.size(), [&](std::uint64_t r) { first_out_[r] += all.begin[r]; });
    view_ = view_of(graph, graph.symmetric() ? nullptr : first_out_.data());
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
    Values<T> values(size);
    fill(values, value);
    return values;
  }
  template <class T>
  void fill(Values<T>& values, T value) const {
    for_rows(values.size(), [&](std::uint64_t i) { values[i] = value; });
  }
  template <class T>
  Values<T> array(std::span<const T> values) const {
    Values<T> copy(values.size());
    std::ranges::copy(values, copy.begin());
    return copy;
  }
  template <class T>
  std::vector<T> first(const Values<T>& values, std::uint64_t count) const {
    return {values.begin(), values.begin() + count};
  }
  template <class T>
  void set(Values<T>& values, std::uint64_t i, T value) const {
    values[i] = value;
  }
  template <class T>
  T get(const Values<T>& values, std::uint64_t i) const {
    return values[i];
  }

  template <class F>
  void for_rows(std::uint64_t count, const F& f) const {
    parallel_blocks(count, kRows, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) f(i);
    });
  }
  template <class F>
  std::uint64_t sum(std::uint64_t count, const F& f) const {
    return folded(count, f, std::plus<std::uint64_t>());
  }
  template <class F>
  std::uint64_t greatest(std::uint64_t count, const F& f) const {
    return folded(count, f, [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
  }
  void wait() const {}

  template <class T, class F, class G>
  TwoSums sum_edges(const SlotEdges& edges, const F& f, const G& g) const {
    const auto sum_of = [&](std::uint64_t row, EdgeOffset begin, EdgeOffset end) {
      return sum_of_lanes<T>(
          end - begin, [&](std::uint64_t k) { return f(row, edges.slots[begin + k], begin + k); });
    };
    std::atomic<std::uint64_t> first{0}, second{0};
    const auto add = [&](const TwoSums& mine) {
      first.fetch_add(mine.first, std::memory_order_relaxed);
      second.fetch_add(mine.second, std::memory_order_relaxed);
    };
    std::vector<std::vector<SumPiece>> of_blocks((view_.own + kPiece - 1) / kPiece);
    parallel_blocks(view_.own, kPiece, [&](std::uint64_t begin, std::uint64_t end) {
      TwoSums mine;
      for (std::uint64_t row = begin; row < end; ++row) {
        if (edges.degree(row) <= kSumPiece)
          mine.add(g(row, sum_of(row, edges.begin[row], edges.end[row])));
        else
          for (EdgeOffset e = edges.begin[row]; e < edges.end[row]; e += kSumPiece)
            of_blocks[begin / kPiece].push_back({row, e});
      }
      add(mine);
    });
    std::vector<SumPiece> pieces;  // of long rows
    for (const auto& of_block : of_blocks)
      pieces.insert(pieces.end(), of_block.begin(), of_block.end());
    std::vector<T> sums(pieces.size());
    parallel_blocks(pieces.size(), kLongRow / kSumPiece, [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t i = from; i < to; ++i) {
        const auto [row, begin] = pieces[i];
        sums[i] = sum_of(row, begin, std::min(edges.end[row], begin + kSumPiece));
      }
    });
    parallel_blocks(pieces.size(), kRows, [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t i = from; i < to; ++i) {
        const auto [row, begin] = pieces[i];
        if (begin != edges.begin[row]) continue;
        const std::uint64_t count = (edges.degree(row) + kSumPiece - 1) / kSumPiece;
        add(g(row, sum_of_lanes<T>(count, [&](std::uint64_t k) { return sums[i + k]; })));
      }
    });
    return {first, second};
  }

  template <class P>
  void keep(const SlotEdges& edges, const P& p, Kept<CpuOperators>& kept) const {
    // Each piece has edges that follow one another, and is told where rows begin among them.
    const std::uint64_t own = view_.own;
    const EdgeOffset places = own == 0 ? 0 : edges.end[own - 1] + 1;  // where a row may begin
    const auto first_row = [&](EdgeOffset e) { return lower_bound(edges.begin, 0, own, e); };
    if (kept.begin.size() != own + 1) kept.begin = Values<std::uint64_t>(own + 1);
    std::vector<std::vector<Slot>> of_pieces((places + kLongRow - 1) / kLongRow);
    parallel_blocks(places, kLongRow, [&](EdgeOffset begin, EdgeOffset end) {
      Slot found[kLongRow];
      std::uint64_t count = 0;
      const auto look = [&](std::uint64_t row, EdgeOffset from) {
        for (EdgeOffset e = from; e < std::min(end, edges.end[row]); ++e) {
          found[count] = edges.slots[e];
          count += p(row, edges.slots[e], e);
        }
      };
      const std::uint64_t first = first_row(begin), last = first_row(end);
      if (first > 0) look(first - 1, begin);
      for (std::uint64_t row = first; row < last; ++row) {
        kept.begin[row] = count;
        look(row, edges.begin[row]);
      }
      of_pieces[begin / kLongRow].assign(found, found + count);
    });
    std::vector<std::uint64_t> before{0};
    for (const auto& piece : of_pieces) before.push_back(before.back() + piece.size());
    if (kept.slots.size() != before.back()) kept.slots = Values<Slot>(before.back());
    kept.begin[own] = before.back();
    parallel_blocks(places, kLongRow, [&](EdgeOffset begin, EdgeOffset end) {
      const std::size_t i = begin / kLongRow;
      std::ranges::copy(of_pieces[i], kept.slots.begin() + before[i]);
      const std::uint64_t last = first_row(end);
      for (std::uint64_t row = first_row(begin); row < last; ++row) kept.begin[row] += before[i];
    });
  }

  template <class T>
  void pull(Values<T>& values) const {
    if (world().size() == 1) return;
    graph_.exchange().gather(Direction::along, values.data(), sizeof(T),
                             {.work = [&](const EdgeRows& rows) {
                               for_rows(view_.slots - view_.own, [&](std::uint64_t h) {
                                 const auto slot = static_cast<Slot>(view_.own + h);
                                 values[slot] = *rows.x.row_of<T>(slot);
                               });
                             }});
  }

  template <class T>
  void push(Values<T>& values, Merge how) const {
    if (world().size() == 1) return;
    std::vector<std::uint32_t> marks(mark_words(view_.slots));
    for_rows(marks.size(), [&](std::uint64_t w) { marks[w] = halo_bits(view_, w); });
    graph_.messages().push(values.span(), marks, how);
  }

  template <class T, class Use>
  void lend(Values<T>& values, const Use& use) const {
    if (world().size() == 1) return use(0, values.data());
    const std::vector<std::uint64_t> sizes = gather_values(world(), std::uint64_t{values.size()});
    Values<T> theirs(std::ranges::max(sizes));
    for (int rank = 0; rank < world().size(); ++rank) {
      T* const data = rank == world().rank() ? values.data() : theirs.data();
      const std::span all(data, sizes[static_cast<std::size_t>(rank)]);
      world().broadcast(std::as_writable_bytes(all), rank);
      use(rank, data);
    }
  }

  template <class F>
  void intersect(const SlotLists& lists, const LentEntries& lent, const F& f) const {
    parallel_blocks(view_.own, kPiece, [&](std::uint64_t begin, std::uint64_t end) {
      RowIntersections<F> rows(lists, lent, f);
      for (std::uint64_t row = begin; row < end; ++row) rows.take(row);
    });
  }

  Frontier frontier(const SlotEdges& edges) const;

  // Calls visit(row, begin, end) for the rows with their edges, of which long rows have theirs
  // divided.
  template <class Visit>
  static void for_pieces(const SlotEdges& edges, std::span<const std::uint32_t> some,
                         const Visit& visit) {
    std::vector<std::vector<std::uint64_t>> long_rows((some.size() + kPiece - 1) / kPiece);
    parallel_blocks(some.size(), kPiece, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) {
        const std::uint64_t row = some[i];
        if (edges.degree(row) > kLongRow)
          long_rows[begin / kPiece].push_back(row);
        else
          visit(row, edges.begin[row], edges.end[row]);
      }
    });
    for (const auto& rows : long_rows)
      for (const std::uint64_t row : rows)
        parallel_blocks(edges.degree(row), kLongRow, [&](std::uint64_t begin, std::uint64_t end) {
          visit(row, edges.begin[row] + begin, edges.begin[row] + end);
        });
  }

 private:
  static constexpr std::uint64_t kRows = 4096;  // for a thread at once
  static constexpr std::uint64_t kPiece = 64;   // rows with their edges

  // Folds f(i) of all i into one number, which is 0 at first.
  template <class F, class Fold>
  std::uint64_t folded(std::uint64_t count, const F& f, const Fold& fold) const {
    std::vector<std::uint64_t> of_blocks((count + kRows - 1) / kRows);
    parallel_blocks(count, kRows, [&](std::uint64_t begin, std::uint64_t end) {
      std::uint64_t mine = 0;
      for (std::uint64_t i = begin; i < end; ++i) mine = fold(mine, f(i));
      of_blocks[begin / kRows] = mine;
    });
    return std::accumulate(of_blocks.begin(), of_blocks.end(), std::uint64_t{0}, fold);
  }

  // Edges of a long row that are added at once.
  struct SumPiece {
    std::uint64_t row;
    EdgeOffset begin;
  };

  SpreadGraph& graph_;
  std::vector<EdgeOffset> first_out_;
  GraphView view_;
};

class CpuOperators::Frontier {
 public:
  Frontier(const CpuOperators& operators, const SlotEdges& edges)
      : on_(operators),
        edges_(edges),
        marks_(mark_words(operators.view().slots)),
        bits_(marks_.size()) {}

  void clear() {
    rows_.clear();
    std::ranges::fill(marks_, 0);  // an advance that has failed may have left some
    edge_count_ = step_ = 0;
    bits_are_known_ = false;
  }
  void add(std::uint64_t row) {
    rows_.push_back(static_cast<std::uint32_t>(row));
    edge_count_ += edges_.degree(row);
    bits_are_known_ = false;
  }
  template <class P>
  void fill(const P& p) {
    mark_where([&](std::uint64_t row) { return p(row); });
    take_marks();
  }
  template <class P>
  void fill(const Frontier& from, const P& p) {
    on_.for_rows(from.rows_.size(), [&](std::uint64_t i) {
      if (p(std::uint64_t{from.rows_[i]})) set_bit(marks_.data(), from.rows_[i]);
    });
    take_marks();
  }
  FrontierTotals totals() const {
    std::uint64_t counts[2] = {rows_.size(), edge_count_};
    if (on_.world().size() > 1) on_.world().all_reduce_sum(std::span(counts));
    return {counts[0], counts[1]};
  }
  std::uint64_t step() const { return step_; }

  template <class F>
  void for_edges(const F& f) const {
    CpuOperators::for_pieces(edges_, rows_,
                             [&](std::uint64_t row, EdgeOffset begin, EdgeOffset end) {
                               for (EdgeOffset e = begin; e < end; ++e) f(row, edges_.slots[e], e);
                             });
  }

  template <class T, class F>
  void advance(const F& f, Buffer<T>& values, Merge how) {
    ++step_;
    if (on_.world().size() == 1 && is_small()) return advance_alone(f);
    for_edges([&](std::uint64_t row, Slot slot, EdgeOffset e) {
      if (f(row, slot, e)) set_bit(marks_.data(), slot);
    });
    if (on_.world().size() > 1) on_.graph().messages().push(values.span(), marks_, how);
    take_marks();
  }

  template <class P, class Take>
  void meet(const SlotEdges& edges, const P& p, const Take& take) {
    ++step_;
    find_bits();
    const std::uint32_t* const bits = bits_.data();
    const auto meets = [&](EdgeOffset e) {
      return (bits[edges.slots[e] / 32] >> edges.slots[e] % 32 & 1) != 0;
    };
    std::vector<std::uint64_t> long_rows;
    std::mutex lock;
    mark_where([&](std::uint64_t row) {
      if (!p(row)) return false;
      if (edges.degree(row) > kLongRow) {
        const std::lock_guard held(lock);
        long_rows.push_back(row);
        return false;
      }
      for (EdgeOffset e = edges.begin[row]; e < edges.end[row]; ++e)
        if (meets(e)) return take(row, edges.slots[e], e), true;
      return false;
    });
    for (const std::uint64_t row : long_rows) {
      const EdgeOffset first = edges.begin[row];
      const EdgeOffset e = first + first_where(edges.degree(row), kLongRow,
                                               [&](std::size_t k) { return meets(first + k); });
      if (e == edges.end[row]) continue;
      take(row, edges.slots[e], e);
      set_bit(marks_.data(), row);
    }
    take_marks();
  }

 private:
  static constexpr std::size_t kWords = 16;  // of marks, for a thread at once

  bool is_small() const { return edge_count_ <= kFewEdges && rows_.size() <= kFewRows; }

  // One step by this thread, which takes no look at rows outside the frontier.
  template <class F>
  void advance_alone(const F& f) {
    next_.clear();
    edge_count_ = 0;
    for (const std::uint32_t row : rows_)
      for (EdgeOffset e = edges_.begin[row]; e < edges_.end[row]; ++e) {
        const Slot slot = edges_.slots[e];
        if (!f(row, slot, e)) continue;
        std::uint32_t& marks = marks_[slot / 32];
        const std::uint32_t mark = std::uint32_t{1} << slot % 32;
        if ((marks & mark) != 0) continue;
        marks |= mark;
        next_.push_back(slot);
        edge_count_ += edges_.degree(slot);
      }
    for (const std::uint32_t row : next_) marks_[row / 32] = 0;
    rows_.swap(next_);
    bits_are_known_ = false;
  }

  // Marks own rows for which p(row); there are no marks before. Each word is one thread's.
  template <class P>
  void mark_where(const P& p) {
    const std::uint64_t own = on_.view().own;
    parallel_blocks(mark_words(own), kWords, [&](std::size_t begin, std::size_t end) {
      for (std::size_t w = begin; w < end; ++w) {
        std::uint32_t word = 0;
        for (std::uint64_t row = w * 32; row < std::min(own, w * 32 + 32); ++row)
          word |= static_cast<std::uint32_t>(p(row)) << row % 32;
        marks_[w] |= word;
      }
    });
  }

  // Makes the marked own rows the frontier, in ascending order. Its marks become its bits.
  void take_marks() {
    marks_.swap(bits_);
    std::ranges::fill(marks_, 0);
    bits_are_known_ = true;
    const std::uint64_t words = mark_words(on_.view().own);
    constexpr std::size_t kBlock = 1024;
    std::vector<std::array<std::uint64_t, 2>> counts((words + kBlock - 1) / kBlock);
    parallel_blocks(words, kBlock, [&](std::size_t begin, std::size_t end) {
      auto& [rows, edges] = counts[begin / kBlock];
      rows = edges = 0;
      for (std::size_t w = begin; w < end; ++w)
        rows += static_cast<std::uint64_t>(std::popcount(bits_[w]));
    });
    std::uint64_t sum = 0;
    for (auto& [rows, edges] : counts) sum += std::exchange(rows, sum);
    rows_.resize(sum);
    parallel_blocks(words, kBlock, [&](std::size_t begin, std::size_t end) {
      auto& [at, edges] = counts[begin / kBlock];
      for (std::size_t w = begin; w < end; ++w)
        for (std::uint32_t bits = bits_[w]; bits != 0; bits &= bits - 1) {
          const auto row = static_cast<std::uint32_t>(w * 32) +
                           static_cast<std::uint32_t>(std::countr_zero(bits));
          rows_[at++] = row;
          edges += edges_.degree(row);
        }
    });
    edge_count_ = 0;
    for (const auto& [rows, edges] : counts) edge_count_ += edges;
  }

  // Collective. Sets the bits of the frontiers of all ranks, as far as slots lead there.
  void find_bits() {
    const std::uint64_t own = on_.view().own, slots = on_.view().slots;
    if (!bits_are_known_) {
      std::ranges::fill(bits_, 0);
      on_.for_rows(rows_.size(), [&](std::uint64_t i) { set_bit(bits_.data(), rows_[i]); });
    }
    if (on_.world().size() == 1) return;
    if (flags_.empty()) flags_ = Buffer<std::uint32_t>(slots);
    on_.for_rows(own, [&](std::uint64_t row) { flags_[row] = bits_[row / 32] >> row % 32 & 1; });
    on_.pull(flags_);
    on_.for_rows(mark_words(slots), [&](std::uint64_t w) {
      std::uint32_t word = 0;
      for (std::uint64_t s = w * 32; s < std::min(slots, w * 32 + 32); ++s)
        word |= flags_[s] << s % 32;
      bits_[w] = word;
    });
    bits_are_known_ = false;
  }

  const CpuOperators& on_;
  const SlotEdges edges_;
  std::vector<std::uint32_t> marks_;  // by slot; none between calls
  std::vector<std::uint32_t> bits_;   // by slot: of the frontier, if they are known
  bool bits_are_known_ = false;
  Buffer<std::uint32_t> flags_;  // by slot: the bits of several ranks, while they are pulled
  RawVector<std::uint32_t> rows_, next_;
  std::uint64_t edge_count_ = 0;  // of the rows
  std::uint64_t step_ = 0;
};

inline CpuOperators::Frontier CpuOperators::frontier(const SlotEdges& edges) const {
  return {*this, edges};
}

}  // namespace plait
