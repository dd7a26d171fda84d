// Edges from bags of all readers to rows of this rank's pieces of embedding tables, and the rows of
// gradients that they read.
#pragma once

#include "plait/base/cuda/device_arrays.cuh"
#include "plait/base/limits.h"
#include "plait/embedding/cuda/bag_sums.cuh"

namespace plait {

// The arrays that edges have besides their rows.
struct EdgeParts {
  bool from = true, weights = false, counts = false, places = false;
};

// Edges from rows of gradients to rows of several tables, whose rows are numbered one table after
// the other (embedding/row_numbers.h). An edge of row kNoRow counts for nothing.
struct DeviceEdges {
  std::uint64_t count = 0;
  Slot* rows = nullptr;
  Slot* from = nullptr;      // rows of gradients; null if edges are only counted
  float* weights = nullptr;  // null: all 1
  Slot* counts = nullptr;    // of ids that each edge stands for; null: all 1
  Slot* places = nullptr;    // in mode max: of ids in their bags; else null

  EdgeParts parts() const {
    return {from != nullptr, weights != nullptr, counts != nullptr, places != nullptr};
  }
};
// Edges with their memory.
struct OwnedEdges : DeviceEdges {
  OwnedEdges(std::uint64_t edges, const EdgeParts& parts, const FromPool& pool);

 private:
  DeviceArrays memory_;
};

// The places for the edges of a reader's bags of a table, and the rows of gradients that they read.
struct EdgeTable {
  std::uint64_t edge = 0;  // the place of the first edge
  Slot row = 0;            // the number of the table's first row
  Slot from = 0;           // the row of gradients of the reader's first bag
  Slot from_step = 1;      // from one bag's row of gradients to the next
  bool wanted = false;     // else there are no edges
  bool gathers = false;    // rows of gradients are gathered, one per bag
  // Where the first of them goes, among all numbers that are gathered. They have as many as the
  // piece has columns, and no gaps.
  std::uint64_t gathered = 0;
};

// The gradients of a reader's bags, samples x tables x width, and in mode max likewise the places
// of the maxima that they are of (embedding/bag_maxima.h).
struct BagGradientsThere {
  const float* sums = nullptr;
  const Slot* places = nullptr;
};
struct ReaderBags {
  DeviceBags bags;
  BagGradientsThere gradients;
};
// All ranks as readers, an argument of kernels. A row of blocks works on each.
struct Readers {
  ReaderBags at[kMostGpus];
  int count = 0;

  std::uint64_t most_bags() const;  // of a table
};

// Enqueues the edges of all readers' bags. `tables`, on the GPU: by reader and table.
void write_edges(const DevicePieces& pieces, const Readers& readers, const EdgeTable* tables,
                 const DeviceEdges& to, cudaStream_t stream);

// The memory that gradients are gathered in.
struct GatheredGradients {
  float* sums = nullptr;
  Slot* places = nullptr;  // null: of none
  // All pieces that are gathered begin and end at multiples of four columns.
  bool in_vectors = false;
};
// Enqueues the copy of gradients of all readers' bags, with their places; rows of empty bags are
// left as they are.
void gather_gradients(const DevicePieces& pieces, const Readers& readers, const EdgeTable* tables,
                      const GatheredGradients& to, cudaStream_t stream);

// The sums of rows of replicated tables that a rank shows to others.
struct RowsOfRank {
  const Slot* rows = nullptr;
  const Slot* counts = nullptr;  // or null
  const float* values = nullptr;
  std::uint64_t count = 0, first = 0;  // the place of the first among all ranks' sums
};
struct JoinedRows {
  RowsOfRank at[kMostGpus];
  int count = 0;
};
// Enqueues the copy of the sums that all ranks show: rows, counts and values of `width` floats,
// each edge reading the row of values at its own place.
void gather_shared(const JoinedRows& shared, std::uint64_t width, const DeviceEdges& to,
                   float* values, cudaStream_t stream);

}  // namespace plait
