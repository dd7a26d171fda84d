// Edges between two labels, as keys to sort: the first half of a quotient graph. Internal to this
// room.
//
// A key is a label and another one, which is in the lower `bits` bits. It has 32 bits if two labels
// fit into them, else 64.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "plait/base/ids.h"
#include "plait/communities/cuda/on_stream.cuh"

namespace plait {

// Edges of a graph, or entries of a quotient, with labels of their ends. Pointers are to memory of
// the GPU.
struct LabelledEdges {
  const EdgeOffset* offsets;  // where the edges of each row begin
  const std::uint32_t* neighbours;
  const std::uint32_t* labels;              // by vertex
  const std::uint32_t* vertices = nullptr;  // by row; null: row i is vertex i
  const std::uint64_t* weights = nullptr;   // by edge; 0 is no edge; null: all are 1
  std::uint64_t rows;
  EdgeOffset edges;
  int bits;   // of a label
  bool both;  // an edge counts in both directions

  __device__ std::uint32_t label_of_row(std::uint64_t row) const {
    return labels[vertices == nullptr ? row : vertices[row]];
  }
};

inline int bits_of(std::uint32_t communities) {
  return std::max(1, static_cast<int>(std::bit_width(communities - std::uint32_t{1})));
}

// Calls act(Key{}) with the type of keys of two labels.
template <class Act>
auto with_key_of(int bits, Act act) {
  return 2 * bits <= 32 ? act(std::uint32_t{}) : act(std::uint64_t{});
}

// The arrays that keys are written to, in any order.
template <class Key>
struct KeysOut {
  Count* written;  // the number of them; zero before
  Key* keys;
  // By key; null if edges have no weights. Weighted edges count in one direction.
  std::uint64_t* weights = nullptr;
};

// Adds the number of edges between communities to `between`, and that of edges inside each to
// `inside`. Marks in `read`, if it is not null, the vertices that rows list. Does not wait.
void count_edges(const LabelledEdges& edges, Count* between, Count* inside, std::uint8_t* read,
                 cudaStream_t stream);

// Writes the keys of edges between different labels. Does not wait. For keys of 32 and of 64 bits.
template <class Key>
void write_keys(const LabelledEdges& edges, const KeysOut<Key>& out, cudaStream_t stream);

}  // namespace plait
