// Graph attention over a rank's edges (Velickovic et al., ICLR 2018, equations 1 to 4), and its
// gradient, on the CPU. cuda/attention.cuh takes the same arguments.
//
// For head k of row i, over the row's edges e to vertices j:
//   l_e = leaky_relu(s[j, k] + t[i, k])        s: score of a source, t: of a target
//   a_e = exp(l_e) / sum of exp(l) over the row
//   y[i, k, :] = sum of m_e a_e h[j, k, :]     m_e: dropout's factor, kept / (1 - p), or 1
// A row without edges becomes 0, and so do its u, b and norm. A score of -infinity has no weight. A
// row whose scores are all -infinity becomes NaN or, if a GPU sums its edges in passes, 0.
//
// Each direction takes one pass over the edges and brings one row per vertex of the halo. With r_e
// = 1 where the argument of leaky_relu is positive and `slope` elsewhere, the gradient for l_e is
// a_e (m_e <dy[i, k], h[j, k]> - c[i, k]) with c = <dy[i, k], y[i, k]>. The gradients for s and t
// are r_e times it, summed over the edges of a source and of a target. In both sums one side of the
// product is the same for all edges, so that no edge needs a product of its own:
//   dt[i, k] = <dy[i, k], u[i, k]> - c[i, k] b[i, k],  u = sum of m_e a_e r_e h[j, k],
//   b = sum of a_e r_e,
// where u and b are sums over the same edges as y. The transposed graph needs of a target i its dy,
// t and c, and the row's norm (log of the sum of exp(l), from which a_e = exp(l_e - norm)):
//   dh[j, k] = sum of m_e a_e dy[i, k],
//   ds[j, k] = <h[j, k], v[j, k]> - sum of a_e r_e c[i, k],  v = sum of m_e a_e r_e dy[i, k].
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/row_stride.h"
#include "plait/kernels/dropout.h"
#include "plait/kernels/edge_rows.h"

namespace plait {

inline constexpr std::uint64_t kMostAttentionHeads = 32;  // on GPUs

// On GPUs, the rows that a group of a cut row keeps for the row's other groups, at most.
inline constexpr std::uint64_t kAttentionRecord = 2;

// Sizes of attention, and of the rows that its edges read.
struct AttentionShape {
  std::uint64_t heads = 1;
  std::uint64_t features = 0;  // per head, at least 1
  float slope = 0.2f;          // factor of leaky_relu below 0

  // Floats of a row of h and of y.
  std::uint64_t width() const { return heads * features; }
  // Floats of a row that the edges read: [h | s] forward, [dy | t | norm | c] backward. Heads of h
  // and dy are head_stride() floats apart, so that each head of more than 2 features begins at a
  // multiple of 16 bytes, and so does the next row. Nobody uses the padding.
  std::uint64_t forward_width() const { return row_stride(tail() + heads); }
  std::uint64_t backward_width() const { return row_stride(tail() + 3 * heads); }
  std::uint64_t head_stride() const { return row_stride(features); }
  // Returns where s, or t, begins in such a row, in floats.
  std::uint64_t tail() const { return heads * head_stride(); }
};

// Decides which attention is dropped, by global ids, so that both directions draw the same numbers.
// The pointers may be null if the step is not active.
struct AttentionDropout {
  DropoutStep step;                            // not active: nothing is dropped
  const std::uint64_t* row_vertex = nullptr;   // global id of each row
  const std::uint64_t* slot_vertex = nullptr;  // global id of each slot
};

// Arguments of attention along the edges. All arrays are without gaps; y and u: rows x width(); t,
// b and norm: rows x heads. u, b and norm are null if no gradient is wanted: all three or none.
struct AttentionForward {
  static constexpr Direction kDirection = Direction::along;

  EdgeRows edges;  // edges.x: rows of forward_width(), [h | s]
  AttentionShape shape;
  AttentionDropout dropout;
  const float* t = nullptr;
  float* y = nullptr;
  float* u = nullptr;
  float* b = nullptr;
  float* norm = nullptr;

  // Members of an operation over edges (edge_rows.h).
  std::uint64_t row_width() const { return shape.forward_width(); }
  std::uint64_t result_width() const { return 2 * (shape.width() + shape.heads); }
  std::vector<std::span<std::byte>> results() const {
    const std::uint64_t rows = edges.begin.size();
    return {results_at(y, rows, shape.width()), results_at(u, rows, shape.width()),
            results_at(b, rows, shape.heads), results_at(norm, rows, shape.heads)};
  }
};

// Arguments of the gradient, along the transposed graph: rows are sources, slots are targets.
struct AttentionBackward {
  static constexpr Direction kDirection = Direction::against;

  EdgeRows edges;  // edges.x: rows of backward_width(), [dy | t | norm | c]
  AttentionShape shape;
  AttentionDropout dropout;
  const float* h = nullptr;  // rows x width(), h_stride floats apart
  const float* s = nullptr;  // rows x heads, s_stride floats apart
  std::uint64_t h_stride = 0, s_stride = 0;
  float* dh = nullptr;  // rows x width(), without gaps
  float* ds = nullptr;  // rows x heads

  // Members of an operation over edges (edge_rows.h).
  std::uint64_t row_width() const { return shape.backward_width(); }
  // v, which a GPU keeps between passes, is counted.
  std::uint64_t result_width() const { return 2 * shape.width() + shape.heads; }
  std::vector<std::span<std::byte>> results() const {
    const std::uint64_t rows = edges.begin.size();
    return {results_at(dh, rows, shape.width()), results_at(ds, rows, shape.heads)};
  }
};

// Does the work with all threads, balanced by edges. The greatest score of a row is subtracted
// before exp is taken, so that none overflows. A row's edges are summed in an order, and in pieces,
// that depend on the graph alone, so the bits do not depend on the number of threads.
void apply(const AttentionForward& args);
void apply(const AttentionBackward& args);

// The same in plain loops, in double precision and one thread: the oracle.
void apply_reference(const AttentionForward& args);
void apply_reference(const AttentionBackward& args);

}  // namespace plait
