// Consecutive rows of a graph, with the distinct rows that they read: as many as fit into a given
// memory. For work on one block after another, where rows that are read do not fit together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/partition/partition.h"
#include "plait/placement/vertex_set.h"

namespace plait {

// Bytes that work on a block takes.
struct BlockCost {
  std::uint64_t limit = 0;       // of all together
  std::uint64_t per_row = 0;     // of the block
  std::uint64_t per_source = 0;  // a distinct vertex that its edges read
  bool edges = false;            // whether edges are held: what make_row_block() takes for them
  bool one_loop_each = false;    // see with_one_loop_each
  std::string what;              // for messages: "layer 2"
};

struct BlockRange {
  std::uint64_t begin = 0, end = 0;  // vertices
  // Whether what the rows read fits too. If not, the block is one row, which has to read the others
  // where they are.
  bool gathered = true;
};

// The longest block that begins at vertex `begin` and ends at `last` at the latest. `sources` then
// holds what its edges read, numbered, if the block is gathered and edges are held. Throws
// DoesNotFitError with the figures if one row alone is too much.
BlockRange cut_block(const AnyCsr& graph, std::uint64_t begin, std::uint64_t last,
                     const BlockCost& cost, VertexSet& sources);

struct RowBlock {
  std::uint64_t begin = 0, end = 0;
  Array<EdgeOffset> offsets;           // rows + 1, from 0
  Array<Slot> slots;                   // one an edge: of `sources`; where that is empty, a vertex
  Array<float> weights;                // one an edge, or empty
  std::vector<float> degree;           // sum of the weights of each row
  std::vector<std::uint64_t> sources;  // ascending, or empty

  std::uint64_t rows() const { return end - begin; }
  EdgeOffset edges() const { return slots.size(); }
};

// The rows of a range that cut_block() gave, with its `sources`. A row's edges keep their order.
RowBlock make_row_block(const AnyCsr& graph, const BlockRange& range, bool one_loop_each,
                        VertexSet& sources);

// Those vertices as a part of their own, number 1 of 3, so that what cuts out a rank's rows cuts
// out a block's.
Partition partition_of_block(std::uint64_t vertices, std::uint64_t begin, std::uint64_t end);
// The sums of weights of the rows of a range, as RowBlock has them.
std::vector<float> degrees_of(const AnyCsr& graph, const BlockRange& range, bool one_loop_each);

}  // namespace plait
