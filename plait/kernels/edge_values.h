// Operations between values of edges and rows of vertices, for layers whose messages or attention
// read more than one row at a source: sampled products (one number per edge and head; g-SDDMM),
// sums of messages (one row per vertex; g-SpMM; WholeGraph, section 5, Wang et al., DGL, 2019), one
// row per edge, and the softmax of scores over the edges of each row.
//
// Row i has edges e to vertices j. Rows are a[i] and b[j]; m[e], weights[e] and results by edge are
// in an order of edges of the caller's own. All rows are `heads` heads of `features` floats. For
// each column c of head k, the term t is one of EdgeTerm; then
//   scores:  z[e, k] = sum of t over the columns of head k
//   sums:    y[i, c] = sum of weights[e, k] t over the edges of i; 0 without edges
//   rows:    r[e, c] = weights[e, k] t
//   softmax: p[e, k] = exp(z[e, k]) / sum of exp(z) over the edges of i
//
// Gradients are made of the same operations, along the transposed lists of edges where they belong
// to b. No operation keeps a row per edge unless its result is one.
#pragma once

#include <cstdint>

#include "plait/kernels/edge_rows.h"

namespace plait {

// The term of a column. m counts as 0 where it is null. `factor` has one number per column.
enum class EdgeTerm : std::uint8_t {
  plus,     // b + m
  product,  // a (b + m)
  leaky,    // factor leaky_relu(a + b + m)
  slope,    // factor times the derivative of leaky_relu at a + b + m
  relu,     // max(b + m, 0)
  gate,     // b where a + m > 0, else 0: the gradient of relu, along transposed edges
  own,      // a
  edge,     // m
};

// Arguments of all operations but softmax. Arrays are without gaps. Arrays that the term does not
// read may be null.
struct EdgeValues {
  EdgeRows edges;                        // x: the rows b
  const std::uint32_t* place = nullptr;  // one per edge: its number in the caller's order
  std::uint64_t heads = 1, features = 0;
  EdgeTerm term = EdgeTerm::plus;
  float slope = 0;                 // of leaky_relu below 0
  const float* a = nullptr;        // rows x width()
  const float* m = nullptr;        // edges x width(), or null
  const float* factor = nullptr;   // width()
  const float* weights = nullptr;  // edges x heads, or null: all 1

  std::uint64_t width() const { return heads * features; }
};

// Arguments of softmax, and of its gradient: with p the softmax and dp the gradient for it,
// dz = p (dp - sum of p dp over the row).
struct EdgeSoftmax {
  EdgeRows edges;  // x is not read
  const std::uint32_t* place = nullptr;
  std::uint64_t heads = 1;
  const float* z = nullptr;   // edges x heads: the scores; in the gradient, p
  const float* dp = nullptr;  // edges x heads, or null: softmax itself
};

// Each overwrites its result, with all threads. `scores` takes the terms product and leaky; `sums`
// plus, leaky, slope, relu, gate and edge; `rows` leaky, slope, gate and own. Others are a
// UsageError. The bits do not depend on the number of threads.
void edge_scores(const EdgeValues& args, float* z);    // edges x heads
void edge_sums(const EdgeValues& args, float* y);      // rows x width()
void edge_rows(const EdgeValues& args, float* r);      // edges x width()
void edge_softmax(const EdgeSoftmax& args, float* p);  // edges x heads

// The same in plain loops, in double precision and one thread: the oracle.
void edge_scores_reference(const EdgeValues& args, float* z);
void edge_sums_reference(const EdgeValues& args, float* y);
void edge_rows_reference(const EdgeValues& args, float* r);
void edge_softmax_reference(const EdgeSoftmax& args, float* p);

}  // namespace plait
