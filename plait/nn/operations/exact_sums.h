// Sums and products of matrices whose bits do not depend on the order of summing: not on how rows
// are spread over ranks, nor on blocks, threads or the device's library of products.
//
// Each number is rounded to a whole multiple of a unit, 2^-42 of a power of two that no number of
// its row (or of its column on all ranks) reaches, and two such whole numbers are multiplied as
// halves of 21 bits in float64. Then nothing is ever rounded while up to 2^11 products are summed,
// so that any order gives the same bits; only then sums are put together, element by element, and
// rounded to float32. The splitting is that of Ozaki, Ogita, Oishi and Rump, "Error-free
// transformations of matrix multiplication" (Numerical Algorithms 2012); the unit common to all
// ranks is that of Demmel and Nguyen, "Fast reproducible floating-point summation" (ARITH 2013).
//
// Error of a sum of n products: n 2^-41 of the greatest numbers' product, and the last rounding.
// Where a row (or a column) holds an infinity or a NaN, all of its results are NaN.
//
// All matrices are float32, on the graph's device. None of these functions is differentiable.
#pragma once

#include <torch/types.h>

#include "plait/nn/operations/graph_handle.h"

namespace plait {

// Returns a b^T, rows of a x rows of b: row i depends on row i of a, and on b, alone.
torch::Tensor exact_row_products(const torch::Tensor& a, const torch::Tensor& b);

// Returns the sum of each row: the last dimension goes. Up to 2^11 columns are summed at once, more
// in blocks.
torch::Tensor exact_row_sums(const torch::Tensor& x);

// Collective. Returns a^T b over the rows of all ranks, columns of a x columns of b, on all ranks.
// a and b: own rows.
torch::Tensor exact_column_products(const torch::Tensor& a, const torch::Tensor& b,
                                    GraphHandle& graph);

// Collective. Returns the sum of each column over the rows of all ranks, on all ranks, float64.
torch::Tensor exact_column_sums(const torch::Tensor& x, GraphHandle& graph);

// Collective. Returns the sums of the rows of each group over all ranks, groups x width, on all
// ranks. `group` (int64) has the number of each own row's group. No group has more than `most`
// rows.
torch::Tensor exact_group_sums(const torch::Tensor& x, const torch::Tensor& group,
                               std::int64_t groups, std::uint64_t most, GraphHandle& graph);

}  // namespace plait
