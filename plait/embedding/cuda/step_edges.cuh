// The edges from the bags of all ranks, in a step on embedding tables, to rows of one rank's
// pieces.
#pragma once

#include <span>
#include <vector>

#include "plait/embedding/cuda/bag_edges.cuh"
#include "plait/embedding/cuda/device_part.cuh"
#include "plait/embedding/row_numbers.h"

namespace plait {

// The bags of a step as the GPU of one rank sees them.
struct StepBags {
  DevicePieces pieces;
  Readers readers;                       // nothing reads their gradients in a step forward
  std::span<const DeviceBatch> batches;  // by rank
  cudaStream_t stream = nullptr;

  const DeviceBatch& own() const { return batches[static_cast<std::size_t>(pieces.rank)]; }
};

// Edges that are written, and the rows of gradients that they read.
struct StepEdges {
  OwnedEdges edges;
  DeviceArray<EdgeTable> tables;  // by reader and table
  // By group of tables: the number of rows of gradients that its edges may read, and, if these are
  // gathered, where the first is among the numbers that are gathered, at a multiple of 64.
  std::vector<std::uint64_t> rows = {}, firsts = {};
  std::uint64_t gathered = 0;  // numbers in all
};

// Enqueues the edges of all ranks' bags to the rows of tables of `numbers`. They read nothing.
StepEdges edges_to_rows(const StepBags& step, const RowNumbers& numbers);

// Enqueues the edges to the rows of all groups of tables of `numbers`: of all ranks' bags, whose
// gradients are to be gathered, or, for replicated tables and on one rank, of its own bags, whose
// gradients are read where they are.
StepEdges edges_to_gradients(const StepBags& step, const RowNumbers& numbers);

}  // namespace plait
