// Norms of some rows of a piece of an embedding table, and their limit.
#pragma once

#include <span>
#include <vector>

#include "plait/base/ids.h"
#include "plait/embedding/norm_limit.h"
#include "plait/embedding/piece_rows.h"

namespace plait {

// Returns the sums of powers of these rows of a piece, by all threads.
std::vector<double> norm_sums(const NormLimit& limit, std::span<const Slot> rows,
                              const PieceRows& piece);
// Limits the norms of these rows, by all threads. `sums` has their sums of powers in all columns of
// the table. Rows are distinct.
void limit_norms(const NormLimit& limit, std::span<const Slot> rows, std::span<const double> sums,
                 const PieceRows& piece);

// Joins the ranks' sums of powers of the same rows, in the order of ranks: mine = sums of rank 0,
// joined with sums of rank 1, ... `parts`: the bytes of each rank's sums, as many as `mine`.
void join_norm_sums(const NormLimit& limit, std::span<const std::vector<std::byte>> parts,
                    std::span<double> mine);

}  // namespace plait
