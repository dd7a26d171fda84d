// Attention of pairs of rows as it is defined, and its gradient by the chain rule, edge by edge, in
// double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plait/kernels/pair_attention.h"

namespace plait {
namespace {

double leaky(double z, const PairShape& shape) { return z > 0 ? z : z * double{shape.slope}; }
double slope_at(double z, const PairShape& shape) { return z > 0 ? 1.0 : double{shape.slope}; }

// The score of two rows of q and p in one head, in either order. Pointers are to the head's
// columns.
double score_of(const PairShape& shape, const float* f, const float* one, const float* other) {
  double z = 0;
  for (std::uint64_t c = 0; c < shape.features; ++c)
    z += shape.score == PairScore::product
             ? double{one[c]} * double{other[c]}
             : double{f[c]} * leaky(double{one[c]} + double{other[c]}, shape);
  return z;
}

// The derivative of the score for column c of `one`.
double derivative(const PairShape& shape, const float* f, const float* one, const float* other,
                  std::uint64_t c) {
  return shape.score == PairScore::product
             ? double{other[c]}
             : double{f[c]} * slope_at(double{one[c]} + double{other[c]}, shape);
}

double product_of(const PairShape& shape, const float* one, const float* other) {
  double sum = 0;
  for (std::uint64_t c = 0; c < shape.features; ++c) sum += double{one[c]} * double{other[c]};
  return sum;
}

// Returns head k of a row without gaps, of f, or of a row that edges read; null stays null.
const float* head_of(const float* row, std::uint64_t k, std::uint64_t stride) {
  return row == nullptr ? nullptr : row + k * stride;
}

// `row` is the target of `slot`'s edge if `along`, else its source.
double factor_of(const AttentionDropout& dropout, std::uint64_t row, Slot slot, std::uint64_t k,
                 bool along) {
  if (!dropout.step.active()) return 1;
  const auto& [which, epoch, layer, epoch_at] = dropout.step;
  const std::uint64_t here = dropout.row_vertex[row], there = dropout.slot_vertex[slot];
  const auto head = static_cast<std::uint32_t>(k);
  return which->factor(
      which->edge_numbers(along ? here : there, along ? there : here, epoch, layer, head)[k % 4]);
}

void write(float* to, std::uint64_t row, const std::vector<double>& sums) {
  for (std::size_t c = 0; to != nullptr && c < sums.size(); ++c)
    to[row * sums.size() + c] = static_cast<float>(sums[c]);
}

void forward_head(const PairForward& args, std::uint64_t i, std::uint64_t k,
                  std::vector<double>& y) {
  const PairShape& shape = args.shape;
  const EdgeOffset begin = args.edges.begin[i], end = args.edges.end[i];
  const float* const q = head_of(args.q + i * shape.width(), k, shape.features);
  const float* const f = head_of(args.f, k, shape.features);
  std::vector<double> scores;
  double greatest = -std::numeric_limits<double>::infinity(), total = 0;
  for (EdgeOffset e = begin; e < end; ++e) {
    const float* const row = args.edges.x.row(args.edges.columns[e]);
    scores.push_back(score_of(shape, f, q, head_of(row, k, shape.head_stride())));
    greatest = std::max(greatest, scores.back());
  }
  for (const double z : scores) total += std::exp(z - greatest);
  for (EdgeOffset e = begin; e < end; ++e) {
    const Slot slot = args.edges.columns[e];
    const float* const v = head_of(args.edges.x.row(slot) + shape.values(), k, shape.head_stride());
    const double a = std::exp(scores[e - begin] - greatest) / total;
    for (std::uint64_t c = 0; c < shape.features; ++c)
      y[k * shape.features + c] += factor_of(args.dropout, i, slot, k, true) * a * double{v[c]};
  }
  if (args.norm != nullptr)
    args.norm[i * shape.heads + k] =
        begin == end ? 0.0f : static_cast<float>(greatest + std::log(total));
}

// Calls work(e, k) for the edges of a row and all heads.
template <class Work>
void each_head(const EdgeRows& edges, const PairShape& shape, std::uint64_t row, Work&& work) {
  for (EdgeOffset e = edges.begin[row]; e < edges.end[row]; ++e)
    for (std::uint64_t k = 0; k < shape.heads; ++k) work(edges.columns[e], k);
}

}  // namespace

void apply_reference(const PairForward& args) {
  for (std::uint64_t i = 0; i < args.edges.begin.size(); ++i) {
    std::vector<double> y(args.shape.width());
    for (std::uint64_t k = 0; k < args.shape.heads; ++k) forward_head(args, i, k, y);
    write(args.y, i, y);
  }
}

void apply_reference(const PairOwnGradient& args) {
  const PairShape& shape = args.shape;
  for (std::uint64_t i = 0; i < args.edges.begin.size(); ++i) {
    std::vector<double> dq(shape.width()), df(shape.width());
    each_head(args.edges, shape, i, [&](Slot slot, std::uint64_t k) {
      const std::uint64_t first = k * shape.features, head = i * shape.heads + k;
      const float* const q = args.q + i * shape.width() + first;
      const float* const dy = args.dy + i * shape.width() + first;
      const float* const f = head_of(args.f, k, shape.features);
      const float* const p = head_of(args.edges.x.row(slot), k, shape.head_stride());
      const double a = std::exp(score_of(shape, f, q, p) - double{args.norm[head]});
      const double product = product_of(shape, dy, p + shape.values());
      const double g =
          a * (factor_of(args.dropout, i, slot, k, true) * product - double{args.c[head]});
      for (std::uint64_t c = 0; c < shape.features; ++c) {
        dq[first + c] += g * derivative(shape, f, q, p, c);
        df[first + c] += g * leaky(double{q[c]} + double{p[c]}, shape);
      }
    });
    write(args.dq, i, dq);
    write(args.df, i, df);
  }
}

void apply_reference(const PairBackward& args) {
  const PairShape& shape = args.shape;
  for (std::uint64_t j = 0; j < args.edges.begin.size(); ++j) {
    std::vector<double> dp(shape.width()), dv(shape.width());
    each_head(args.edges, shape, j, [&](Slot slot, std::uint64_t k) {
      const std::uint64_t first = k * shape.features;
      const float* const row = args.edges.x.row(slot);
      const float* const p = args.p + j * shape.width() + first;
      const float* const f = head_of(args.f, k, shape.features);
      const float* const q = head_of(row, k, shape.head_stride());
      const float* const dy = q + shape.part();
      const float* const tail = row + 2 * shape.part() + k;  // norm and c, `heads` apart
      const double a = std::exp(score_of(shape, f, p, q) - double{tail[0]});
      const double m = factor_of(args.dropout, j, slot, k, false);
      const double product = product_of(shape, args.v + j * shape.width() + first, dy);
      const double g = a * (m * product - double{tail[shape.heads]});
      for (std::uint64_t c = 0; c < shape.features; ++c) {
        dp[first + c] += g * derivative(shape, f, p, q, c);
        dv[first + c] += m * a * double{dy[c]};
      }
    });
    write(args.dp, j, dp);
    write(args.dv, j, dv);
  }
}

}  // namespace plait
