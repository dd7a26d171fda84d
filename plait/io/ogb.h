// Folders of the Open Graph Benchmark's node property prediction (W. Hu et al., NeurIPS 2020), as
// the ogb package leaves them:
//
//   raw/edge.csv.gz            one line `source,target` per edge, vertices counted from 0
//   raw/num-node-list.csv.gz   the number of vertices
//   raw/num-edge-list.csv.gz   the number of edges
//   raw/node-feat.csv.gz       one line of numbers per vertex
//   raw/node-label.csv.gz      one label per line, -1 or nan for none
//   split/NAME/{train,valid,test}.csv.gz   vertices, one per line
//
// or instead of the files in raw/, for large graphs,
//
//   raw/data.npz               edge_index (2, E), num_nodes_list (1), node_feat (N, width)
//   raw/node-label.npz         node_label (N) or (N, 1)
//
// Only the edges and the number of vertices are required. Edges stand as they are in the files: if
// ogb adds the reverse of every edge when it loads (ogbn-products, ogbn-proteins), ask for
// undirected edges. Other arrays and files of raw/, such as features of edges, are left out, with a
// warning that names them.
#pragma once

#include <string>
#include <string_view>

#include "plait/graph/dataset.h"
#include "plait/io/npy.h"
#include "plait/io/parsed.h"

namespace plait {

// Tells whether the folder holds the edges of either form.
bool is_ogb_folder(const std::string& path);

// Reads a folder. Throws an InputError that names the file in the folder. Files are unpacked one
// after the other; the memory taken is bounded by their unpacked size. `told` is the number of
// vertices if the caller knows it (vertex_count.h).
ParsedDataset read_ogb_folder(const std::string& path, std::uint64_t told = 0);

// --- the files of a folder, unpacked ---

// Reads an unpacked file: lines of numbers with commas between them, as many on each line. Throws
// InputError.
NpyMatrix parse_number_table(std::string_view text, const std::string& file);

// Reads an unpacked file: one whole number per line, each in 0 .. most. Throws InputError.
std::vector<std::uint64_t> parse_number_lines(std::string_view text, const std::string& file,
                                              std::uint64_t most);

}  // namespace plait
