// The greatest or least of a row's neighbours, column by column (the max aggregation of GraphSAGE:
// Hamilton, Ying and Leskovec, NeurIPS 2017, section 3.3), and its gradient, on the CPU.
// cuda/extremum.cuh takes the same arguments.
//
// Where several edges reach the extremum, the gradient is split evenly between them, as by
// scatter_reduce(amax) of PyTorch: a target sends each source [y | dy / number of such edges], and
// a source adds where its own value is that y.
#pragma once

#include "plait/base/row_stride.h"
#include "plait/kernels/edge_rows.h"

namespace plait {

enum class Extremum { greatest, least };

// On GPUs, the rows that a group of a cut row keeps for the row's other groups: values, and ties or
// sums.
inline constexpr std::uint64_t kExtremumRecord = 2;

// Arguments of the extremum along the edges. y and ties: rows x width, without gaps; ties may be
// null. edges.x: rows of `width`. A row without edges becomes 0, with 0 ties. NaN wins over all
// numbers, and then all NaN count as ties.
struct ExtremumForward {
  static constexpr Direction kDirection = Direction::along;

  EdgeRows edges;
  std::uint64_t width = 0;
  float* y = nullptr;
  float* ties = nullptr;  // number of edges whose value is y
  Extremum which = Extremum::greatest;

  // Members of an operation over edges (edge_rows.h).
  std::uint64_t row_width() const { return width; }
  std::uint64_t result_width() const { return 2 * width; }
  std::vector<std::span<std::byte>> results() const {
    return {results_at(y, edges.begin.size(), width), results_at(ties, edges.begin.size(), width)};
  }
};

// Arguments of the gradient along the transposed graph, the same for both extrema. edges.x: rows of
// row_width() floats, [y | dy / ties], each part padded to row_stride(width), so that both begin at
// multiples of 16 bytes if the width is above 2.
struct ExtremumBackward {
  static constexpr Direction kDirection = Direction::against;

  EdgeRows edges;
  std::uint64_t width = 0;
  const float* x = nullptr;  // rows x width, as the forward pass read them
  float* dx = nullptr;       // rows x width

  // Members of an operation over edges (edge_rows.h).
  std::uint64_t row_width() const { return 2 * row_stride(width); }
  std::uint64_t result_width() const { return width; }
  std::vector<std::span<std::byte>> results() const {
    return {results_at(dx, edges.begin.size(), width)};
  }
};

// Does the work with all threads, balanced by edges. The order of a row's edges influences only the
// sum of gradients, and it depends on the graph alone.
void apply(const ExtremumForward& args);
void apply(const ExtremumBackward& args);

// The same in plain loops, in one thread: the oracle.
void apply_reference(const ExtremumForward& args);
void apply_reference(const ExtremumBackward& args);

}  // namespace plait
