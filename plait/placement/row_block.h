// Consecutive rows of a graph, with the distinct rows that they read: as many as fit into a given
// memory. They allow work on one block after another, if the rows that are read do not fit all at
// once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/partition/partition.h"
#include "plait/placement/vertex_set.h"

namespace plait {

// Bytes that work on a block takes.
struct BlockCost {
  std::uint64_t limit = 0;    // of everything together
  std::uint64_t per_row = 0;  // per row of the block
  // per distinct vertex that its edges read; 0: rows are not gathered
  std::uint64_t per_source = 0;
  // True if edges are held; the bytes that make_row_block() takes for them are then added.
  bool edges = false;
  bool one_loop_each = false;              // see with_one_loop_each
  std::span<const std::uint64_t> numbers;  // of vertices for messages; empty: their ids
  std::string what;                        // subject of messages: "layer 2"
};

// The vertices begin .. end - 1.
struct BlockRange {
  std::uint64_t begin = 0, end = 0;  // vertices
  // True if the rows that the block reads fit too. If not, the block is one row, which has to read
  // other rows where they are.
  bool gathered = true;
};

// Returns the longest block that begins at vertex `begin` and ends at `last` at the latest. If the
// block is gathered and edges are held, `sources` then holds the vertices that its edges read,
// numbered. Throws DoesNotFitError with the figures if one row alone is too much.
BlockRange cut_block(const AnyCsr& graph, std::uint64_t begin, std::uint64_t last,
                     const BlockCost& cost, VertexSet& sources);

// The rows of a block.
struct RowBlock {
  std::uint64_t begin = 0, end = 0;
  Array<EdgeOffset> offsets;  // rows + 1, from 0
  Array<Slot> slots;          // one per edge: an index of `sources` or, if that is empty, a vertex
  Array<float> weights;       // one per edge, or empty
  std::vector<float> degree;  // sum of the weights of each row
  std::vector<std::uint64_t> sources;  // ascending, or empty

  std::uint64_t rows() const { return end - begin; }
  EdgeOffset edges() const { return slots.size(); }
};

// Returns the rows of a range that cut_block() gave, with its `sources`. A row's edges keep their
// order.
RowBlock make_row_block(const AnyCsr& graph, const BlockRange& range, bool one_loop_each,
                        VertexSet& sources);

// Returns a partition in which these vertices are part 1 of 3, so that functions which cut out a
// rank's rows cut out a block's.
Partition partition_of_block(std::uint64_t vertices, std::uint64_t begin, std::uint64_t end);
// Returns the sums of weights of the rows of a range, as in RowBlock.
std::vector<float> degrees_of(const AnyCsr& graph, const BlockRange& range, bool one_loop_each);

}  // namespace plait
