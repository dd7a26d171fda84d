// Attention on the CPU. As for SpMM, the time goes into fetching rows of x, so each row is read
// once, for the scores that stand at its end and for the sum.
//
//   Blocks    A row's edges are worked through 32 at a time: first the scores of all heads, then
//             exp of them eight at once, then the weighted sums of the 32 rows, head by head, in
//             registers. The rows of a block are still in the second-level cache when they are
//             added, and the rows of the next are on their way.
//   Softmax   Forward, the greatest score so far is kept; where a block has a greater one, the sums
//             so far are scaled down (Milakov and Gimelshein, "Online normalizer calculation
//             for softmax", 2018). Backward needs none of it: the row's norm is known.
// Both directions make the same sums of rows of h or of dy, by weights w_e = m_e a_e and w_e r_e.
#include "plait/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/kernels/cpu/fast_exp.h"
#include "plait/kernels/cpu/fold_rows.h"
#include "plait/kernels/float8.h"

namespace plait {
namespace {

constexpr std::size_t kBlock = 32;  // edges
constexpr std::size_t kSliceVectors = 4;
constexpr std::uint64_t kSlice = kSliceVectors * kFloat8;
// Finite, so that a difference of two is not NaN.
constexpr float kLeast = std::numeric_limits<float>::lowest();

// The weighted sums of one slice of one head: `edges` rows, from column `first` on.
struct BlockSum {
  const float* const* rows;
  std::size_t edges;
  std::uint64_t first, columns;
  const float* weights;        // w, one per edge
  const float* slope_weights;  // w r
  float* sum;                  // += sum of w x
  float* slope_sum;            // += sum of w r x; of pairs
};

// Adds a block with `Vectors` registers. The last register is used in part if `Partial`.
template <std::size_t Vectors, bool Partial, bool Pair>
void add_block(const BlockSum& a) {
  constexpr std::size_t kWhole = Partial ? Vectors - 1 : Vectors;
  const FirstLanes part(static_cast<int>(a.columns - (Vectors - 1) * kFloat8));
  const auto load = [&](auto v, const float* from) __attribute__((always_inline)) {
    return v < kWhole ? Float8::load(from + v * kFloat8) : part.load(from + v * kFloat8);
  };
  const auto store = [&](auto v, float* to, Float8 value) __attribute__((always_inline)) {
    v < kWhole ? value.store(to + v * kFloat8) : part.store(to + v * kFloat8, value);
  };
  std::array<Float8, Vectors> sum, slope_sum;
  unrolled<Vectors>([&](auto v) {
    sum[v] = load(v, a.sum);
    if constexpr (Pair) slope_sum[v] = load(v, a.slope_sum);
  });
  for (std::size_t e = 0; e < a.edges; ++e) {
    const float* x = a.rows[e] + a.first;
    const Float8 weight = Float8::all(a.weights[e]);
    const Float8 slope_weight = Float8::all(a.slope_weights[e]);
    unrolled<Vectors>([&](auto v) {
      const Float8 value = load(v, x);
      sum[v] = fma(weight, value, sum[v]);
      if constexpr (Pair) slope_sum[v] = fma(slope_weight, value, slope_sum[v]);
    });
  }
  unrolled<Vectors>([&](auto v) {
    store(v, a.sum, sum[v]);
    if constexpr (Pair) store(v, a.slope_sum, slope_sum[v]);
  });
}

// Index: bits 0-1 are the registers less one, bit 2 tells partial, bit 3 pairs.
template <std::size_t... I>
constexpr auto add_table(std::index_sequence<I...>) {
  return std::array{add_block<I % 4 + 1, (I & 4) != 0, (I & 8) != 0>...};
}
constexpr auto kAddBlock = add_table(std::make_index_sequence<16>{});

// Returns the sum of `padded` values, a multiple of kFloat8, in an order that their number decides.
template <class Value>
float sum_of(std::size_t padded, Value&& value) {
  float lanes[kFloat8] = {};
  for (std::size_t first = 0; first < padded; first += kFloat8)
    for (std::size_t i = 0; i < kFloat8; ++i) lanes[i] += value(first + i);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

float greatest_of(const float* values, std::size_t padded) {
  float lanes[kFloat8];
  std::fill_n(lanes, kFloat8, kLeast);
  for (std::size_t first = 0; first < padded; first += kFloat8)
    for (std::size_t i = 0; i < kFloat8; ++i)
      lanes[i] = values[first + i] > lanes[i] ? values[first + i] : lanes[i];
  return *std::max_element(lanes, lanes + kFloat8);
}

// The kernel of AttentionForward if `Forward`, with u and b if `Pair`; else of AttentionBackward.
// Record: [sum of w x | sum of w r x | of each head: greatest score | sum of a | sum of a r], the
// last times c backward.
template <bool Forward, bool Pair>
class AttentionKernel {
 public:
  using Args = std::conditional_t<Forward, AttentionForward, AttentionBackward>;

  explicit AttentionKernel(const Args& args)
      : args_(args),
        heads_(args.shape.heads),
        features_(args.shape.features),
        width_(args.shape.width()),
        a_(heads_ * kBlock),
        slope_(heads_ * kBlock),
        norm_(Forward ? 0 : heads_ * kBlock),
        c_(Forward ? 0 : heads_ * kBlock) {}

  FoldWidths widths() const {
    return {Forward ? args_.shape.forward_width() : args_.shape.backward_width(),
            2 * width_ + 3 * heads_};
  }

  void fold(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher,
            float* record) {
    std::fill_n(record, widths().record, 0.0f);
    std::fill_n(greatest(record), heads_, kLeast);
    for (EdgeOffset e = begin; e < end; e += edges_) {
      edges_ = std::min<EdgeOffset>(kBlock, end - e);
      padded_ = (edges_ + kFloat8 - 1) / kFloat8 * kFloat8;
      fetcher.fetch(edges_);
      for (std::size_t i = 0; i < edges_; ++i)
        rows_[i] = args_.edges.x.row(args_.edges.columns[e + i]);
      std::fill(rows_ + edges_, rows_ + padded_, rows_[edges_ - 1]);
      read_tails();
      for (std::uint64_t k = 0; k < heads_; ++k) {
        score(k, own_score(row, k));
        weigh(k, record);
      }
      if (args_.dropout.step.active()) drop(row, e);
      for (std::uint64_t k = 0; k < heads_; ++k) add_rows(k, record);
    }
  }

  void join(float* record, const float* later) {
    for (std::uint64_t k = 0; k < heads_; ++k) {
      float before = 1, after = 1;
      if constexpr (Forward) {
        const float most = std::max(greatest(record)[k], greatest(later)[k]);
        before = fast_exp(greatest(record)[k] - most);
        after = fast_exp(greatest(later)[k] - most);
        greatest(record)[k] = most;
      }
      const auto add = [&](std::uint64_t at) {
        record[at] = before * record[at] + after * later[at];
      };
      for (std::uint64_t j = 0; j < features_; ++j) {
        add(k * features_ + j);
        add(width_ + k * features_ + j);
      }
      add(2 * width_ + heads_ + k);
      add(2 * width_ + 2 * heads_ + k);
    }
  }

  void finish(std::uint64_t row, const float* record) {
    if constexpr (Forward)
      finish_forward(row, record);
    else
      finish_backward(row, record);
  }

 private:
  template <class Float>
  Float* greatest(Float* record) const {
    return record + 2 * width_;
  }
  template <class Float>
  Float* sum(Float* record) const {
    return record + 2 * width_ + heads_;
  }
  template <class Float>
  Float* slope_sum(Float* record) const {
    return record + 2 * width_ + 2 * heads_;
  }

  float own_score(std::uint64_t row, std::uint64_t k) const {
    if constexpr (Forward)
      return args_.t[row * heads_ + k];
    else
      return args_.s[row * args_.s_stride + k];
  }

  // Reads the numbers beside h or dy: a_ becomes s or t, norm_ and c_ the numbers of these names.
  void read_tails() {
    for (std::size_t i = 0; i < padded_; ++i) {
      const float* const tail = rows_[i] + args_.shape.tail();
      for (std::uint64_t k = 0; k < heads_; ++k) {
        a_[k * kBlock + i] = tail[k];
        if constexpr (!Forward) {
          norm_[k * kBlock + i] = tail[heads_ + k];
          c_[k * kBlock + i] = tail[2 * heads_ + k];
        }
      }
    }
  }

  // a_ becomes the scores, backward less the norm; slope_ becomes r.
  void score(std::uint64_t k, float own) {
    float* __restrict const a = &a_[k * kBlock];
    float* __restrict const slope = &slope_[k * kBlock];
    const float* __restrict const norm = Forward ? nullptr : &norm_[k * kBlock];
    const float below = args_.shape.slope;
    for (std::size_t first = 0; first < padded_; first += kFloat8)
      for (std::size_t i = first; i < first + kFloat8; ++i) {
        const float argument = a[i] + own;
        slope[i] = argument > 0 ? 1.0f : below;
        a[i] = argument * slope[i];
        if constexpr (!Forward) a[i] -= norm[i];
      }
  }

  // a_ becomes a, forward times a factor that all edges of the row share; slope_ is 0 behind the
  // last edge.
  void weigh(std::uint64_t k, float* record) {
    float* const a = &a_[k * kBlock];
    float* const slope = &slope_[k * kBlock];
    float most = 0;
    if constexpr (Forward) {
      most = greatest_of(a, padded_);
      float& so_far = greatest(record)[k];
      if (most > so_far) {
        scale_down(k, fast_exp(so_far - most), record);
        so_far = most;
      }
      most = so_far;
    }
    for (std::size_t first = 0; first < padded_; first += kFloat8)
      for (std::size_t i = 0; i < kFloat8; ++i) a[first + i] = fast_exp(a[first + i] - most);
    for (std::size_t i = edges_; i < padded_; ++i) a[i] = slope[i] = 0;
    if constexpr (Forward) {
      sum(record)[k] += sum_of(padded_, [&](std::size_t i) { return a[i]; });
      slope_sum(record)[k] += sum_of(padded_, [&](std::size_t i) { return a[i] * slope[i]; });
    } else {
      const float* const c = &c_[k * kBlock];
      slope_sum(record)[k] +=
          sum_of(padded_, [&](std::size_t i) { return a[i] * slope[i] * c[i]; });
    }
  }

  void scale_down(std::uint64_t k, float factor, float* record) const {
    float* const x = record + k * features_;
    for (std::uint64_t j = 0; j < features_; ++j) x[j] *= factor;
    if constexpr (Pair)
      for (std::uint64_t j = 0; j < features_; ++j) x[width_ + j] *= factor;
    sum(record)[k] *= factor;
    slope_sum(record)[k] *= factor;
  }

  // a_ becomes m a.
  void drop(std::uint64_t row, EdgeOffset e) {
    const DropoutStep& step = args_.dropout.step;
    const Dropout dropout = *step.dropout;
    const std::uint32_t epoch = step.current_epoch(), layer = step.layer;
    const std::uint64_t here = args_.dropout.row_vertex[row];
    for (std::size_t i = 0; i < edges_; ++i)
      vertex_[i] = args_.dropout.slot_vertex[args_.edges.columns[e + i]];
    for (std::uint64_t first = 0; first < heads_; first += 4) {
      const auto k = static_cast<std::uint32_t>(first);
      for (std::size_t i = 0; i < padded_; ++i) {
        const std::uint64_t target = Forward ? here : vertex_[i];
        const std::uint64_t source = Forward ? vertex_[i] : here;
        const Philox::Block four = dropout.edge_numbers(target, source, epoch, layer, k);
        for (std::size_t n = 0; n < 4; ++n) numbers_[n * kBlock + i] = four[n];
      }
      for (std::uint64_t n = 0; n < 4 && first + n < heads_; ++n) {
        float* __restrict const a = &a_[(first + n) * kBlock];
        const std::uint32_t* __restrict const numbers = &numbers_[n * kBlock];
        for (std::size_t i = 0; i < padded_; ++i) a[i] *= dropout.factor(numbers[i]);
      }
    }
  }

  void add_rows(std::uint64_t k, float* record) {
    const float* const a = &a_[k * kBlock];
    float* const slope = &slope_[k * kBlock];
    if constexpr (Pair)
      for (std::size_t i = 0; i < padded_; ++i) slope[i] *= a[i];
    for (std::uint64_t first = 0; first < features_; first += kSlice) {
      const std::uint64_t columns = std::min(kSlice, features_ - first);
      const std::uint64_t column = k * features_ + first;
      const std::size_t form =
          ((columns - 1) / kFloat8) | (columns % kFloat8 ? 4u : 0u) | (Pair ? 8u : 0u);
      kAddBlock[form]({rows_, edges_, k * args_.shape.head_stride() + first, columns, a, slope,
                       record + column, record + width_ + column});
    }
  }

  void finish_forward(std::uint64_t row, const float* record) const {
    const bool empty = args_.edges.begin[row] == args_.edges.end[row];
    for (std::uint64_t k = 0; k < heads_; ++k) {
      const float scale = empty ? 0.0f : 1.0f / sum(record)[k];
      const std::uint64_t first = row * width_ + k * features_;
      const float* const x = record + k * features_;
      for (std::uint64_t j = 0; j < features_; ++j) args_.y[first + j] = x[j] * scale;
      if constexpr (Pair) {
        for (std::uint64_t j = 0; j < features_; ++j) args_.u[first + j] = x[width_ + j] * scale;
        args_.b[row * heads_ + k] = slope_sum(record)[k] * scale;
        args_.norm[row * heads_ + k] =
            empty ? 0.0f : greatest(record)[k] + std::log(sum(record)[k]);
      }
    }
  }

  void finish_backward(std::uint64_t row, const float* record) const {
    std::copy_n(record, width_, args_.dh + row * width_);
    for (std::uint64_t k = 0; k < heads_; ++k) {
      const float* const h = args_.h + row * args_.h_stride + k * features_;
      const float* const v = record + width_ + k * features_;
      float product =
          sum_of(features_ / kFloat8 * kFloat8, [&](std::size_t j) { return h[j] * v[j]; });
      for (std::uint64_t j = features_ / kFloat8 * kFloat8; j < features_; ++j)
        product += h[j] * v[j];
      args_.ds[row * heads_ + k] = product - slope_sum(record)[k];
    }
  }

  Args args_;
  std::uint64_t heads_, features_, width_;
  // The members describe one block: the number of its edges, the same rounded up to whole vectors,
  // the rows of the edges, and kBlock numbers per head, or per four heads, by head.
  std::size_t edges_ = 0, padded_ = 0;
  const float* rows_[kBlock] = {};
  std::uint64_t vertex_[kBlock] = {};
  std::uint32_t numbers_[4 * kBlock] = {};
  std::vector<float> a_, slope_, norm_, c_;
};

template <bool Forward, bool Pair, class Args>
void run(const Args& args) {
  const AttentionKernel<Forward, Pair> kernel(args);
  fold_rows(args.edges, kernel.widths(), kernel);
}

}  // namespace

void apply(const AttentionForward& args) {
  args.u ? run<true, true>(args) : run<true, false>(args);
}

void apply(const AttentionBackward& args) { run<false, true>(args); }

}  // namespace plait
