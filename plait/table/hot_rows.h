// Hot rows are the rows that are read most often. Each GPU keeps copies of them. A weight for each
// row tells which rows are hot: how often the graph's edges read the row, or how often the gathers
// of a first epoch did.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plait/base/array.h"
#include "plait/graph/csr.h"
#include "plait/table/stored_rows.h"

namespace plait {

// Returns for each vertex the number of edges that read it: its entries among all neighbours. By
// all threads; takes 8 bytes per vertex.
Buffer<std::uint64_t> times_read(const AnyCsr& graph);

// Returns the ids of the at most `most` rows of greatest weight, ascending; of rows of equal weight
// the rows with the least ids, and no row of weight 0. `skip`: rows that are left out because the
// reader has them anyway; or empty. The weights are read five times, and no more memory is taken.
std::vector<std::uint64_t> hot_rows(std::span<const std::uint64_t> weights, std::uint64_t most,
                                    const std::function<bool(std::uint64_t)>& skip = {});

// Returns the index of StoredRows::hot: one entry per 64 ids below `rows`. Throws UsageError unless
// the ids ascend and are below `rows`.
std::vector<HotIds> hot_index(std::span<const std::uint64_t> ids, std::uint64_t rows);

// Returns the bytes of so many copies with the index, and the most copies that `bytes` have room
// for.
std::uint64_t hot_bytes(std::uint64_t copies, std::uint64_t rows, std::uint64_t stride);
std::uint64_t hot_rows_that_fit(std::uint64_t bytes, std::uint64_t rows, std::uint64_t stride);

}  // namespace plait
