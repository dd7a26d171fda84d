// Attention of pairs of rows on the CPU. As for attention, the time goes into fetching rows of x:
// edges are worked through kBlock at a time, first their scores, then the sums of their rows, which
// are then in a cache.
//
//   Forward   keeps the greatest score so far; where a block has a greater one, the sums so far are
//             scaled down (Milakov and Gimelshein, "Online normalizer calculation for softmax",
//             2018).
//   Gradients need none of it: the norm is known.
#include "plait/kernels/pair_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plait/kernels/cpu/fast_exp.h"
#include "plait/kernels/cpu/fold_rows.h"
#include "plait/kernels/float8.h"

namespace plait {
namespace {

constexpr std::size_t kBlock = 32;  // edges
// Finite, so that a difference of two is not NaN.
constexpr float kLeast = std::numeric_limits<float>::lowest();

inline float total_of(Float8 sums) {
  float lanes[kFloat8];
  sums.store(lanes);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

inline float product_of(const float* one, const float* other, std::uint64_t count) {
  Float8 sum = Float8::all(0);
  by_eight(0, count, [&](std::uint64_t c, const auto& part) {
    sum = fma(part.load(one + c), part.load(other + c), sum);
  });
  return total_of(sum);
}

// sums += weight * row
inline void add_row(float* sums, float weight, const float* row, std::uint64_t count) {
  const Float8 weights = Float8::all(weight);
  by_eight(0, count, [&](std::uint64_t c, const auto& part) {
    part.store(sums + c, fma(weights, part.load(row + c), part.load(sums + c)));
  });
}

// The scores of one head of two rows of q and p, and the sums of their derivatives.
template <PairScore kScore>
struct Scorer {
  float slope;

  float score(const float* one, const float* other, const float* f, std::uint64_t count) const {
    if constexpr (kScore == PairScore::product) {
      return product_of(one, other, count);
    } else {
      Float8 sum = Float8::all(0);
      by_eight(0, count, [&](std::uint64_t c, const auto& part) {
        const Float8 z = part.load(one + c) + part.load(other + c);
        sum = fma(part.load(f + c), z * slope_at(z), sum);
      });
      return total_of(sum);
    }
  }
  // Adds g times the derivative of the score for each column of `one`.
  void add_derivative(float* sums, float g, const float* one, const float* other, const float* f,
                      std::uint64_t count) const {
    if constexpr (kScore == PairScore::product) {
      add_row(sums, g, other, count);
    } else {
      by_eight(0, count, [&](std::uint64_t c, const auto& part) {
        const Float8 z = part.load(one + c) + part.load(other + c);
        part.store(sums + c,
                   fma(Float8::all(g) * part.load(f + c), slope_at(z), part.load(sums + c)));
      });
    }
  }
  // Adds g times the derivative for each column of f.
  void add_factor(float* sums, float g, const float* one, const float* other,
                  std::uint64_t count) const {
    by_eight(0, count, [&](std::uint64_t c, const auto& part) {
      const Float8 z = part.load(one + c) + part.load(other + c);
      part.store(sums + c, fma(Float8::all(g), z * slope_at(z), part.load(sums + c)));
    });
  }

 private:
  // The slope of leaky_relu at each z.
  Float8 slope_at(Float8 z) const {
    return if_greater(z, Float8::all(0), Float8::all(1), Float8::all(slope));
  }
};

// The parts that all three operations have in common.
template <class Args, PairScore kScore>
class PairKernel {
 public:
  explicit PairKernel(const Args& args)
      : args_(args),
        scorer_{args.shape.slope},
        heads_(args.shape.heads),
        features_(args.shape.features),
        width_(args.shape.width()),
        numbers_(heads_ * kBlock),
        factors_(args.dropout.step.active() ? heads_ * kBlock : 0) {}

 protected:
  static constexpr bool kAlong = Args::kDirection == Direction::along;

  // Calls block() for the edges of a row, kBlock at a time.
  template <class Block>
  void each_block(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher,
                  Block&& block) {
    for (EdgeOffset e = begin; e < end; e += edges_) {
      edges_ = std::min<EdgeOffset>(kBlock, end - e);
      fetcher.fetch(edges_);
      for (std::size_t i = 0; i < edges_; ++i) {
        slots_[i] = args_.edges.columns[e + i];
        rows_[i] = args_.edges.x.row(slots_[i]);
      }
      if (!factors_.empty()) draw(row);
      block();
    }
  }
  // The number of edge i of the block and head k.
  float& number(std::size_t i, std::uint64_t k) { return numbers_[k * kBlock + i]; }

  // Returns dropout's factor of edge i of the block and head k.
  float factor(std::size_t i, std::uint64_t k) const {
    return factors_.empty() ? 1.0f : factors_[k * kBlock + i];
  }
  const float* factors_of(std::uint64_t first) const {
    return kScore == PairScore::leaky ? args_.f + first : nullptr;
  }

  // Draws the factors of the block's edges, of four heads at once.
  void draw(std::uint64_t row) {
    const DropoutStep& step = args_.dropout.step;
    const std::uint64_t here = args_.dropout.row_vertex[row];
    for (std::size_t i = 0; i < edges_; ++i) {
      const std::uint64_t there = args_.dropout.slot_vertex[slots_[i]];
      for (std::uint64_t k = 0; k < heads_; k += 4) {
        const Philox::Block four = step.dropout->edge_numbers(
            kAlong ? here : there, kAlong ? there : here, step.current_epoch(), step.layer,
            static_cast<std::uint32_t>(k));
        for (std::uint64_t of = k; of < std::min(k + 4, heads_); ++of)
          factors_[of * kBlock + i] = step.dropout->factor(four[of - k]);
      }
    }
  }

  Args args_;
  Scorer<kScore> scorer_;
  std::uint64_t heads_, features_, width_;
  std::size_t edges_ = 0;  // of the block
  const float* rows_[kBlock] = {};
  Slot slots_[kBlock] = {};
  std::vector<float> numbers_;
  std::vector<float> factors_;  // if attention is dropped
};

// Record: [sum of m exp(z) v | of each head: greatest score | sum of exp(z)].
template <PairScore kScore>
class ForwardKernel : public PairKernel<PairForward, kScore> {
 public:
  using PairKernel<PairForward, kScore>::PairKernel;

  FoldWidths widths() const { return {this->args_.row_width(), this->width_ + 2 * this->heads_}; }

  void fold(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher,
            float* record) {
    std::fill_n(record, widths().record, 0.0f);
    std::fill_n(greatest(record), this->heads_, kLeast);
    this->each_block(row, begin, end, fetcher, [&] {
      for (std::uint64_t k = 0; k < this->heads_; ++k) add_head(row, k, record);
    });
  }

  void join(float* record, const float* later) {
    for (std::uint64_t k = 0; k < this->heads_; ++k) {
      const float most = std::max(greatest(record)[k], greatest(later)[k]);
      const float before = fast_exp(greatest(record)[k] - most),
                  after = fast_exp(greatest(later)[k] - most);
      greatest(record)[k] = most;
      total(record)[k] = before * total(record)[k] + after * total(later)[k];
      for (std::uint64_t c = k * this->features_; c < (k + 1) * this->features_; ++c)
        record[c] = before * record[c] + after * later[c];
    }
  }

  void finish(std::uint64_t row, const float* record) {
    const bool empty = this->args_.edges.begin[row] == this->args_.edges.end[row];
    for (std::uint64_t k = 0; k < this->heads_; ++k) {
      const float scale = empty ? 0.0f : 1.0f / total(record)[k];
      for (std::uint64_t c = k * this->features_; c < (k + 1) * this->features_; ++c)
        this->args_.y[row * this->width_ + c] = record[c] * scale;
      if (this->args_.norm != nullptr)
        this->args_.norm[row * this->heads_ + k] =
            empty ? 0.0f : greatest(record)[k] + std::log(total(record)[k]);
    }
  }

 private:
  template <class Float>
  Float* greatest(Float* record) const {
    return record + this->width_;
  }
  template <class Float>
  Float* total(Float* record) const {
    return record + this->width_ + this->heads_;
  }

  void add_head(std::uint64_t row, std::uint64_t k, float* record) {
    const std::uint64_t first = k * this->features_, features = this->features_,
                        in_row = k * this->args_.shape.head_stride();
    const float* const q = this->args_.q + row * this->width_ + first;
    float most = greatest(record)[k];
    for (std::size_t i = 0; i < this->edges_; ++i) {
      this->number(i, k) =
          this->scorer_.score(q, this->rows_[i] + in_row, this->factors_of(first), features);
      most = std::max(most, this->number(i, k));
    }
    const float before = fast_exp(greatest(record)[k] - most);
    greatest(record)[k] = most;
    total(record)[k] *= before;
    float* const sums = record + first;
    for (std::uint64_t c = 0; c < features; ++c) sums[c] *= before;
    for (std::size_t i = 0; i < this->edges_; ++i) {
      const float a = fast_exp(this->number(i, k) - most);
      total(record)[k] += a;
      add_row(sums, this->factor(i, k) * a, this->rows_[i] + this->args_.shape.values() + in_row,
              features);
    }
  }
};

// Records of gradients are plain sums: of two rows, the second perhaps unwanted.
template <class Args, PairScore kScore>
class GradientKernel : public PairKernel<Args, kScore> {
 public:
  using PairKernel<Args, kScore>::PairKernel;

  FoldWidths widths() const { return {this->args_.row_width(), 2 * this->width_}; }
  void join(float* record, const float* later) {
    for (std::uint64_t c = 0; c < 2 * this->width_; ++c) record[c] += later[c];
  }

 protected:
  void put(std::uint64_t row, const float* record, float* first, float* second) const {
    std::copy_n(record, this->width_, first + row * this->width_);
    if (second != nullptr)
      std::copy_n(record + this->width_, this->width_, second + row * this->width_);
  }
};

template <PairScore kScore>
class OwnGradientKernel : public GradientKernel<PairOwnGradient, kScore> {
 public:
  using GradientKernel<PairOwnGradient, kScore>::GradientKernel;

  void fold(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher,
            float* record) {
    const PairOwnGradient& args = this->args_;
    std::fill_n(record, 2 * this->width_, 0.0f);
    this->each_block(row, begin, end, fetcher, [&] {
      for (std::uint64_t k = 0; k < this->heads_; ++k) {
        const std::uint64_t first = k * this->features_, features = this->features_,
                            at = row * this->width_ + first, head = row * this->heads_ + k;
        const float* const f = this->factors_of(first);
        for (std::size_t i = 0; i < this->edges_; ++i) {
          const float* const p = this->rows_[i] + k * args.shape.head_stride();
          const float a =
              fast_exp(this->scorer_.score(args.q + at, p, f, features) - args.norm[head]);
          const float product = product_of(args.dy + at, p + args.shape.values(), features);
          const float g = a * (this->factor(i, k) * product - args.c[head]);
          this->scorer_.add_derivative(record + first, g, args.q + at, p, f, features);
          if (args.df != nullptr)
            this->scorer_.add_factor(record + this->width_ + first, g, args.q + at, p, features);
        }
      }
    });
  }
  void finish(std::uint64_t row, const float* record) {
    this->put(row, record, this->args_.dq, this->args_.df);
  }
};

template <PairScore kScore>
class BackwardKernel : public GradientKernel<PairBackward, kScore> {
 public:
  using GradientKernel<PairBackward, kScore>::GradientKernel;

  void fold(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher,
            float* record) {
    const PairBackward& args = this->args_;
    std::fill_n(record, 2 * this->width_, 0.0f);
    this->each_block(row, begin, end, fetcher, [&] {
      for (std::uint64_t k = 0; k < this->heads_; ++k) {
        const std::uint64_t first = k * this->features_, features = this->features_,
                            at = row * this->width_ + first;
        const float* const f = this->factors_of(first);
        for (std::size_t i = 0; i < this->edges_; ++i) {
          const float* const q = this->rows_[i] + k * args.shape.head_stride();
          const float* const dy = q + args.shape.part();
          const float* const tail = this->rows_[i] + 2 * args.shape.part() + k;
          const float a = fast_exp(this->scorer_.score(args.p + at, q, f, features) - tail[0]);
          const float m = this->factor(i, k);
          const float g = a * (m * product_of(args.v + at, dy, features) - tail[this->heads_]);
          this->scorer_.add_derivative(record + first, g, args.p + at, q, f, features);
          add_row(record + this->width_ + first, m * a, dy, features);
        }
      }
    });
  }
  void finish(std::uint64_t row, const float* record) {
    this->put(row, record, this->args_.dp, this->args_.dv);
  }
};

template <template <PairScore> class Kernel, class Args>
void run(const Args& args) {
  const auto fold = [&](const auto& kernel) { fold_rows(args.edges, kernel.widths(), kernel); };
  args.shape.score == PairScore::product ? fold(Kernel<PairScore::product>(args))
                                         : fold(Kernel<PairScore::leaky>(args));
}

}  // namespace

void apply(const PairForward& args) { run<ForwardKernel>(args); }
void apply(const PairOwnGradient& args) { run<OwnGradientKernel>(args); }
void apply(const PairBackward& args) { run<BackwardKernel>(args); }

}  // namespace plait
