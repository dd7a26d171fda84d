// Graph attention over a rank's edges (Velickovic et al., ICLR 2018, equations 1 to 4), and its
// gradient, on the CPU.
//
// For head k of row i, over the row's edges e to vertices j:
//   l_e = leaky_relu(s[j, k] + t[i, k])        s: score of a source, t: of a target
//   a_e = exp(l_e) / sum of exp(l) over the row
//   y[i, k, :] = sum of m_e a_e h[j, k, :]     m_e: dropout's factor, kept / (1 - p), or 1
// A row without edges becomes 0.
//
// One pass over the edges each way, and one row a vertex through the halo each way: the gradient
// for t needs no edges, because with r_e = 1 where the argument of leaky_relu is positive and
// `slope` elsewhere
//   dt[i, k] = <dy[i, k], u[i, k]> - c[i, k] b[i, k],  u = sum of m_e a_e r_e h[j, k],
//   b = sum of a_e r_e, c = <dy[i, k], y[i, k]>,
// where u and b are sums over the same edges as y. What the transposed graph needs of a target i is
// dy, t, c and the row's norm (log of the sum of exp(l)):
//   dh[j, k] = sum of m_e a_e dy[i, k],  ds[j, k] = sum of a_e r_e (m_e <dy[i, k], h[j, k]> - c).
#pragma once

#include <cstdint>
#include <span>

#include "plait/kernels/dropout.h"
#include "plait/kernels/spmm.h"

namespace plait {

struct AttentionShape {
  std::uint64_t heads = 1;
  std::uint64_t features = 0;  // of a head
  float slope = 0.2f;          // of leaky_relu below 0

  std::uint64_t width() const { return heads * features; }
  // Floats of a row that the edges read: [h | s] forward, [dy | t | norm | c] backward.
  std::uint64_t forward_width() const { return heads * (features + 1); }
  std::uint64_t backward_width() const { return heads * (features + 3); }
};

// Which attention is dropped: by global ids, so that both directions draw the same.
struct AttentionDropout {
  DropoutStep step;                            // not active: nothing is dropped
  const std::uint64_t* row_vertex = nullptr;   // global id of each row
  const std::uint64_t* slot_vertex = nullptr;  // global id of each slot
};

// The edges of a rank's rows, and the rows that they read. Arrays as in SpmmArgs.
struct EdgeRows {
  std::span<const EdgeOffset> begin, end;
  const Slot* columns = nullptr;
  RowSource x;
};

// All arrays without gaps. y and u: rows x width(); t, b and norm: rows x heads. u, b and norm may
// be null where no gradient is wanted.
struct AttentionForward {
  EdgeRows edges;  // x: rows of forward_width()
  AttentionShape shape;
  AttentionDropout dropout;
  const float* t = nullptr;
  float* y = nullptr;
  float* u = nullptr;
  float* b = nullptr;
  float* norm = nullptr;
};

// Along the transposed graph: rows are sources, slots are targets.
struct AttentionBackward {
  EdgeRows edges;  // x: rows of backward_width()
  AttentionShape shape;
  AttentionDropout dropout;
  const float* h = nullptr;  // rows x width(), h_stride floats from one to the next
  const float* s = nullptr;  // rows x heads, s_stride
  std::uint64_t h_stride = 0, s_stride = 0;
  float* dh = nullptr;  // rows x width(), without gaps
  float* ds = nullptr;  // rows x heads
};

// Uses all threads, balanced by edges; a row's edges are summed in their order, so the bits do not
// depend on the number of threads or ranks.
void attention(const AttentionForward& args);
void attention_backward(const AttentionBackward& args);

// The same in plain loops in double precision, one thread: the oracle.
void attention_reference(const AttentionForward& args);
void attention_backward_reference(const AttentionBackward& args);

}  // namespace plait
