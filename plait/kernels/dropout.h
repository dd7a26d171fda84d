// Dropout (Srivastava et al., 2014): element (vertex, column) of the input of `layer` in `epoch` is
// kept if its own number, uniform in [0, 1), is at least p; an element that is kept is divided by 1
// - p.
//
// The number is a function of these keys alone: the same for every number of ranks, every partition
// and every thread count, on the CPU and on the GPU (cuda/dropout.h).
//
// Encoding of the counter: low = global vertex; high = epoch (24 bits) | layer (8) | column / 4
// (32): one Philox block serves four columns.
//
// Attention is dropped by edge and head. Its counter: low = a mix of the two global ids; high =
// epoch (24 bits) | layer (8) | 1 (1) | head / 4 (31): one block serves four heads. column / 4
// stays below 2^30, so that the two kinds never share a counter. For a given target the mix is one
// to one in the source, and the other way round. Two arbitrary edges share their numbers with a
// probability of 2^-64. Parallel edges are dropped together.
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/random.h"

namespace plait {

// The random numbers of dropout with one seed and probability. Trivially copyable: kernels take it
// by value. It has no state, so threads may share it.
class Dropout {
 public:
  // p: probability to drop, in [0, 1). Throws UsageError otherwise.
  Dropout(std::uint64_t seed, float p);

  float p() const { return p_; }
  // Multiplies row[c] by kept(c) / (1 - p), for all columns c of the row of a vertex.
  void apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
             std::span<float> row) const;
  // Does so for a row that stores only some columns. `columns`: these columns, ascending; `values`:
  // one number for each of them.
  void apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
             std::span<const std::uint32_t> columns, std::span<float> values) const;

  // Returns the numbers of the four columns that include `column`; its own is [column % 4].
  PLAIT_HOST_DEVICE Philox::Block numbers(std::uint64_t vertex, std::uint32_t epoch,
                                          std::uint32_t layer, std::uint32_t column) const {
    return philox_(vertex, high(epoch, layer) | column / 4);
  }
  // Returns the numbers of the four heads that include `head`, on an edge; its own is [head % 4].
  PLAIT_HOST_DEVICE Philox::Block edge_numbers(std::uint64_t target, std::uint64_t source,
                                               std::uint32_t epoch, std::uint32_t layer,
                                               std::uint32_t head) const {
    // The ~ makes (u, v) and (v, u) differ.
    return philox_(mix(target) ^ mix(~source),
                   high(epoch, layer) | std::uint64_t{1} << 31 | head / 4);
  }
  // Tells whether the element with this number is kept.
  PLAIT_HOST_DEVICE bool keeps(std::uint32_t number) const { return uniform_float(number) >= p_; }
  // Returns 1 / (1 - p), the factor of elements that are kept.
  PLAIT_HOST_DEVICE float scale() const { return scale_; }
  // Returns the factor of the element with this number: scale() or 0.
  PLAIT_HOST_DEVICE float factor(std::uint32_t number) const {
    return keeps(number) ? scale_ : 0.0f;
  }

 private:
  // Returns the part of the counter's high word that all elements of a layer share.
  PLAIT_HOST_DEVICE static constexpr std::uint64_t high(std::uint32_t epoch, std::uint32_t layer) {
    return std::uint64_t{epoch & 0xffffffu} << 40 | std::uint64_t{layer & 0xffu} << 32;
  }
  // The mix is one to one, and every bit of `id` reaches every bit of the result.
  PLAIT_HOST_DEVICE static constexpr std::uint64_t mix(std::uint64_t id) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    id = (id ^ id >> 32) * kOdd;
    id = (id ^ id >> 32) * kOdd;
    return id ^ id >> 32;
  }

  Philox philox_;
  float p_;
  float scale_;
};

// Names the random numbers of one layer in one epoch. Without `dropout`, nothing is dropped.
struct DropoutStep {
  const Dropout* dropout = nullptr;  // must outlive the backward pass
  std::uint32_t epoch = 0;
  std::uint32_t layer = 0;
  // On the GPU: the place from which kernels read the epoch instead, for work that is recorded once
  // and replayed; or null.
  const std::uint32_t* epoch_at = nullptr;

  // Tells whether anything is dropped.
  bool active() const { return dropout != nullptr && dropout->p() > 0; }
  PLAIT_HOST_DEVICE std::uint32_t current_epoch() const {
    return epoch_at != nullptr ? *epoch_at : epoch;
  }
};

// Arguments of drop_rows(). x and y are different arrays: rows x width, without gaps.
struct DropoutRows {
  const std::uint64_t* vertices = nullptr;  // global id of each row
  std::uint64_t rows = 0, width = 0;
  const float* x = nullptr;
  float* y = nullptr;
  bool relu = false;  // max(x, 0) is dropped instead of x
};

// Computes y = x times the mask of an active step, by all threads. Does not read `epoch_at`.
void drop_rows(const DropoutStep& step, const DropoutRows& rows);

// Arguments of drop_relu_gradient(): `count` numbers each. The mask need not be drawn again, for y,
// dropout's result behind ReLU, is above 0 just where an element came through both.
struct DropReluGradient {
  std::uint64_t count = 0;
  const float* y = nullptr;
  const float* gradient = nullptr;  // for y
  float* result = nullptr;          // for x
  float scale = 1;                  // of dropout
};

// Computes the gradient, by all threads.
void drop_relu_gradient(const DropReluGradient& args);

}  // namespace plait
