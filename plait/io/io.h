// Files <-> datasets: the one door. The format is found from the content and the name.
//
//   .plait          container          io/container.h
//   .mtx            Matrix Market      io/matrix_market.h
//   .txt .el .csv .tsv .edges   edge list, SNAP's rules   io/edge_list_file.h
//   .npz            SciPy CSR, or the arrays of a graph archive   io/npz.h
//   .npy            a 2 x E array of (source, target)             io/npy.h
//
// Readers trust nothing: a size that a header promises is checked against the bytes that are there
// before memory is taken for it. Memory that a reader allocates is bounded by twice the size of
// the file (of the general file that a symmetric Matrix Market file stands for), or, where the file
// is compressed, of its uncompressed content, plus 1 MiB.
// All of them throw InputError for wrong content and Error when the system refuses.
#pragma once

#include <string>

#include "plait/graph/build.h"
#include "plait/graph/dataset.h"

namespace plait {

struct ReadOptions {
  BuildOptions build;
  bool progress = false;  // a bar on stderr while text is parsed
};

// Reads, builds and validates. A .plait file is mapped, not copied, unless `build` changes it.
Dataset read_dataset(const std::string& path, const ReadOptions& options = {});

// Writes in the format that the name's ending asks for (.plait, .mtx, .npz, .txt). The file
// appears whole or not at all: it is written beside its place, synced and renamed.
void write_dataset(const Dataset& dataset, const std::string& path);

}  // namespace plait
