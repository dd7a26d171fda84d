// Sparse matrices as scipy.sparse.save_npz writes them: the array `format` names the form.
//
//   csr   indptr (rows + 1), indices, data
//   csc   the same of columns
//   coo   row, col, data
//   bsr   indptr (block rows + 1), indices, data (blocks, block height, block width); the zeros of
//   a
//         block fill it up and are no entries
#pragma once

#include <cstdint>

#include "plait/graph/csr.h"
#include "plait/graph/edge_list.h"
#include "plait/io/npz_archive.h"

namespace plait {

// The entries of a matrix: row = target, column = source, `vertices` = rows. `told` is the number
// of vertices if the caller knows it (vertex_count.h). Throws InputError. Takes up to 16 bytes per
// element of a bsr.
template <VertexId V>
EdgeList<V> read_scipy_entries(const NpzArchive& archive, MatrixShape shape, std::uint64_t told);

// Reads features: the rows of the matrix. The caller must know their number to be right, because
// memory is taken for every row. Throws InputError.
Csr32 read_scipy_features(const NpzArchive& archive, MatrixShape shape);

}  // namespace plait
