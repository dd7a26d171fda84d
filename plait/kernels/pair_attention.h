// Attention whose score is a function of two whole rows: dynamic attention (Brody, Alon and Yahav,
// ICLR 2022, equation 7) and products of queries and keys (Shi et al., IJCAI 2021, equation 3; MGG,
// table 2). And its gradient, on the CPU; cuda/pair_attention.cuh takes the same arguments.
//
// For head k of row i, over the row's edges e to vertices j, with the columns c of the head:
//   z_e = sum of q[i, c] p[j, c]                         PairScore::product
//   z_e = sum of f[c] leaky_relu(q[i, c] + p[j, c])      PairScore::leaky; f: one number per column
//   a_e = exp(z_e) / sum of exp(z) over the row
//   y[i, k, :] = sum of m_e a_e v[j, k, :]               m_e: dropout's factor, as in attention.h
// v is p, or rows of its own. A row without edges becomes 0, and so does its norm, the log of the
// sum of exp(z). A score of -infinity has no weight. A row whose scores are all -infinity becomes
// NaN or, if a GPU sums its edges in passes, 0.
//
// With c[i, k] = <dy[i, k], y[i, k]> the gradient for z_e is g_e = a_e (m_e <dy[i, k], v[j, k]> -
// c[i, k]), where a_e = exp(z_e - norm[i, k]). Its sums need the scores of both ends again: those
// for q and f of the edges of i, which read p and v as forward, and those for p and v of the edges
// of j in the transposed graph, which read q, dy, norm and c. No operation keeps a number per edge.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/kernels/attention.h"

namespace plait {

inline constexpr std::uint64_t kMostPairFeatures = 512;  // per head, on GPUs

enum class PairScore : std::uint8_t { product, leaky };

// Sizes, and the rows that edges read.
struct PairShape {
  std::uint64_t heads = 1;
  std::uint64_t features = 0;  // per head, at least 1
  PairScore score = PairScore::product;
  bool own_values = false;  // v has rows of its own
  float slope = 0.2f;       // factor of leaky_relu below 0

  // Floats of a row of q, p, v, dy and y.
  std::uint64_t width() const { return heads * features; }
  // Floats of a row that the edges read: [p] or [p | v] forward, [q | dy | norm | c] backward. In
  // such a row, heads of p, v, q and dy are head_stride() floats apart, so that each begins at a
  // multiple of 16 bytes. Nobody uses the padding.
  std::uint64_t head_stride() const { return (features + 3) / 4 * 4; }
  std::uint64_t part() const { return heads * head_stride(); }
  std::uint64_t forward_width() const { return own_values ? 2 * part() : part(); }
  std::uint64_t backward_width() const { return row_stride(2 * part() + 2 * heads); }
  // Returns where v begins in a row.
  std::uint64_t values() const { return own_values ? part() : 0; }
};

// Arguments of the operation along the edges. Arrays are without gaps; q and y: rows x width();
// norm: rows x heads, or null if no gradient is wanted; f: width(), read by PairScore::leaky.
struct PairForward {
  static constexpr Direction kDirection = Direction::along;

  EdgeRows edges;  // edges.x: rows of forward_width()
  PairShape shape;
  AttentionDropout dropout;
  const float* q = nullptr;
  const float* f = nullptr;
  float* y = nullptr;
  float* norm = nullptr;

  // Members of an operation over edges (edge_rows.h).
  std::uint64_t row_width() const { return shape.forward_width(); }
  std::uint64_t result_width() const { return shape.width() + shape.heads; }
  std::vector<std::span<std::byte>> results() const {
    const std::uint64_t rows = edges.begin.size();
    return {results_at(y, rows, shape.width()), results_at(norm, rows, shape.heads)};
  }
};

// Arguments of the gradients for q and, with PairScore::leaky, for f, along the edges. dq: rows x
// width(); df: the same, to be summed over rows, or null; norm and c: rows x heads.
struct PairOwnGradient {
  static constexpr Direction kDirection = Direction::along;

  EdgeRows edges;  // as forward
  PairShape shape;
  AttentionDropout dropout;
  const float* q = nullptr;
  const float* f = nullptr;
  const float* dy = nullptr;
  const float* norm = nullptr;
  const float* c = nullptr;
  float* dq = nullptr;
  float* df = nullptr;

  // Members of an operation over edges (edge_rows.h).
  std::uint64_t row_width() const { return shape.forward_width(); }
  std::uint64_t result_width() const { return 2 * shape.width(); }
  std::vector<std::span<std::byte>> results() const {
    const std::uint64_t rows = edges.begin.size();
    return {results_at(dq, rows, shape.width()), results_at(df, rows, shape.width())};
  }
};

// Arguments of the gradients for p, by the scores alone, and for v, along the transposed graph:
// rows are sources, slots are targets. p and v, dp and dv: rows x width(). Where v is p, the
// gradient is the sum of both.
struct PairBackward {
  static constexpr Direction kDirection = Direction::against;

  EdgeRows edges;  // edges.x: rows of backward_width()
  PairShape shape;
  AttentionDropout dropout;
  const float* p = nullptr;
  const float* v = nullptr;
  const float* f = nullptr;
  float* dp = nullptr;
  float* dv = nullptr;

  // Members of an operation over edges (edge_rows.h).
  std::uint64_t row_width() const { return shape.backward_width(); }
  std::uint64_t result_width() const { return 2 * shape.width(); }
  std::vector<std::span<std::byte>> results() const {
    const std::uint64_t rows = edges.begin.size();
    return {results_at(dp, rows, shape.width()), results_at(dv, rows, shape.width())};
  }
};

// Does the work with all threads, balanced by edges. Bits do not depend on the number of threads.
void apply(const PairForward& args);
void apply(const PairOwnGradient& args);
void apply(const PairBackward& args);

// The same in plain loops, in double precision and one thread: the oracle.
void apply_reference(const PairForward& args);
void apply_reference(const PairOwnGradient& args);
void apply_reference(const PairBackward& args);

}  // namespace plait
