// Files <-> datasets: the one door. The format is found from the content and the name.
//
//   .plait          container          io/container.h
//   .mtx            Matrix Market      io/matrix_market.h
//   .npz            SciPy, or the arrays of a graph archive   io/npz.h
//   .gnna.npz       GNNAdvisor's arrays                           io/gnnadvisor.h
//   .npy            a 2 x E array of (source, target)             io/npy.h
//   .txt .csv .tsv .edges .edgelist   edge list, SNAP's rules     io/edge_list_file.h
//   .el .wel .sg .wsg           GAP benchmark suite               io/edge_list_file.h, io/gap.h
//   .graph          METIS              io/metis.h
//   .gr             DIMACS             io/dimacs.h
//   .adj            Ligra              io/ligra.h
//   _beg_pos.bin    MGG                io/mgg.h
//   a folder        OGB                io/ogb.h
//
// Readers trust nothing: a size that a header promises is compared with the bytes that are there
// before memory is taken for it. Memory that a reader allocates is bounded by twice the size of the
// file (of the general file that a symmetric Matrix Market file stands for) or, if the file is
// compressed, of its uncompressed content, plus 1 MiB; METIS and Ligra take 8 more bytes per
// vertex, which has a line or a word in the file. If a file holds rows that are not sorted, the
// graph is built once more. All readers throw InputError for wrong content and Error if the system
// refuses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plait/graph/build.h"
#include "plait/graph/dataset.h"
#include "plait/io/first_line.h"

namespace plait {

// Options of reading a file.
struct ReadOptions {
  BuildOptions build;
  bool progress = false;  // a bar on stderr while text is parsed
  bool warnings = true;   // on stderr, about content of the file that is left out
  // An ending of the list above, without its dot; empty: found from content and name.
  std::string format = {};
  // Path of a file with one number per edge, in the order in which the graph's file lists edges or,
  // for formats by rows, targets. They replace the weights of the graph.
  std::string weights = {};
  bool drop_weights = false;
  // The number of vertices, 0 if the caller does not know it. In edge lists and .npy, ids are then
  // vertices, and vertices without edges count. A file that states another number is refused, and a
  // file that states far more than its edges can name is refused without it (io/vertex_count.h).
  std::uint64_t vertices = 0;
  // The kind of an edge list's first line, and whether each of its lines is one edge although a
  // comment says that the graph is undirected. Other formats refuse both.
  FirstLine first_line = FirstLine::guess;
  bool directed = false;
  std::vector<std::string>* warnings_to = nullptr;  // takes the warnings in place of stderr
};

// Reads, builds and validates a dataset. A .plait file is mapped, not copied, unless `build`
// changes it. Throws InputError for wrong content, Error if the system refuses, UsageError for an
// unknown format, and DoesNotFitError.
Dataset read_dataset(const std::string& path, const ReadOptions& options = {});

// Options of writing a file.
struct WriteOptions {
  std::string format = {};  // an ending as above; empty: found from the name
  bool warnings = false;    // on stderr, about parts of the dataset that the format leaves out
};

// Writes in the format that the options name or, without one, that the name's ending asks for. The
// file appears whole or not at all: it is written beside its place, synced and renamed. Throws a
// UsageError that lists the endings, and Error if the format cannot hold the dataset or the file
// cannot be written.
void write_dataset(const Dataset& dataset, const std::string& path,
                   const WriteOptions& options = {});

// Return the endings that are read or written, in the order of the list above: ".plait .mtx ...".
std::string readable_endings();
std::string writable_endings();

}  // namespace plait
