// NumPy's .npz: a zip archive of .npy members, stored or deflated, read and written through libzip.
//
// Three kinds of archive are read. A warning names all members that are not read.
//
// 1. A SciPy sparse matrix (io/scipy.h). Row i lists the vertices that i aggregates from; data are
//    the edges' weights, or no weights if all of them are 1.
// 2. A graph archive:
//      edge_index              (2, E) integers: column (u, v) is a message from u to v
//      src, dst                (E) integers each, in place of it (io/edge_ends.h)
//      num_nodes               one integer: N
//      edge_weight             (E) numbers; else edge_attr, if it is (E) or (E, 1)
//      x                       (N, width) f4 or f8: features; or as CSR:
//      x_data, x_indices, x_indptr, x_shape
//      tag                     (N) integers: the kind of each vertex; without x, these
//                              become one-hot features
//      y                       (N) or (N, 1) integers: labels, -1 for none; or (N, classes) of 0
//                              and 1: label sets; sets of one class are named label_sets
//      train, val, test        vertex ids: one split
//      train_masks, val_masks, test_masks   (K, N) booleans: K alternative splits
//      train_mask, val_mask, test_mask      as PyTorch Geometric has them: (N) or (N, K) booleans;
//                              where others are (N, K), one of (N) is in all K splits. They are
//                              passed over, with a warning, if there are splits of another form
//      graph_id                (N) the graph of each vertex, in a set of G small graphs:
//                              y is then (G), splits are of graph ids and masks (K, G). With a
//                              label for each vertex, it is left out
//      original_ids            (N) the source's ids of vertices
//    Only edge_index is required. The number of vertices is num_nodes, else the number of rows of
//    x, else the length of the masks (if they are of vertices), of graph_id or of y (whichever is
//    long enough for all ids), else the number that the caller knows, else largest id + 1.
//
//    Arrays of other common names are read as these: num_vertices; edge_weights, weights, weight;
//    features, feature, feat, feats, node_feat, node_features; labels, label, node_labels,
//    node_label; batch (graph_id); valid (val) in all names; train_idx, train_index, idx_train
//    (train), and likewise val and test. Of several names for the same array, the first of such a
//    list is read; the others count as not read.
// 3. GNNAdvisor's edges: io/gnnadvisor.h.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/io/parsed.h"

namespace plait {

// The parts of a split by the names of their arrays.
inline constexpr std::array<std::pair<const char*, Split>, 3> kNpzSplits{
    {{"train", Split::train}, {"val", Split::validation}, {"test", Split::test}}};

// Reads an archive. `told` is the number of vertices if the caller knows it (vertex_count.h). A
// member's size is believed only if its compressed bytes can hold that much
// (deflate packs at most 1032 to one), and checksums are checked. Throws InputError.
ParsedDataset parse_npz(std::span<const std::byte> bytes, const std::string& file,
                        std::uint64_t told = 0);

// Writes a graph archive. Half precision features become single; the name is not kept. The caller
// commits the file.
void write_npz(const Dataset& dataset, AtomicFile& file, bool compress = true);

}  // namespace plait
