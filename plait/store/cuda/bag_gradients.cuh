// The gradients of rows that bags name: edges from bags to rows, sorted by row, and their sums.
#pragma once

#include <functional>
#include <span>

#include "plait/store/cuda/bag_sums.cuh"
#include "plait/store/embedding_rules.h"

namespace plait {

// Edges from rows of gradients to rows of several tables, whose rows are numbered one table after
// the other. An edge of row kNoRow counts for nothing.
struct DeviceEdges {
  DeviceArray<Slot> rows;
  DeviceArray<Slot> from;
  DeviceArray<float> weights;  // one per edge; empty: all 1
  DeviceArray<Slot> counts;    // of ids that each edge stands for; empty: all 1
  DeviceArray<Slot> places;    // in mode max: of ids in their bags; else empty

  DeviceEdges(std::uint64_t count, bool weighted, const FromPool& pool)
      : rows(count, pool), from(count, pool), weights(weighted ? count : 0, pool) {}
};

// Where the edges of a table go, and what they read.
struct EdgeTable {
  std::uint64_t edge = 0;  // the place of the first edge of the reader's bags
  Slot row = 0;            // the number of the table's first row
  Slot from = 0;           // the row of gradients of the reader's first bag
  Slot from_step = 1;      // from one bag's row of gradients to the next
  bool wanted = false;     // else the table has no edges here
};

// The gradients of a reader's bags, samples x tables x width, and in mode max likewise the places
// of the maxima that they are of (store/bag_maxima.h).
struct BagGradientsThere {
  const float* sums = nullptr;
  const Slot* places = nullptr;
};

// Enqueues the edges of a reader's bags to rows of this rank's pieces. `tables`, on the GPU: one
// per table.
void write_edges(const DevicePieces& pieces, const DeviceBags& bags, const EdgeTable* tables,
                 const DeviceEdges& to, cudaStream_t stream);
// Enqueues the copy of gradients of a reader's bags, with their places, into rows of `columns`
// numbers that the edges name; rows of empty bags are left as they are.
struct GatheredGradients {
  float* sums = nullptr;
  Slot* places = nullptr;  // null: of none
  std::uint64_t columns = 0;
};
void gather_gradients(const DevicePieces& pieces, const DeviceBags& bags, const EdgeTable* tables,
                      const BagGradientsThere& gradients, const GatheredGradients& to,
                      cudaStream_t stream);

// Rows of gradients, in memory of the GPU.
struct GradientRows {
  const float* at = nullptr;
  std::uint64_t rows = 0, columns = 0, stride = 0;
  const Slot* places = nullptr;  // likewise, of edges with places
};

// The sums of gradients by row.
struct DeviceRowSums {
  std::uint64_t count = 0;            // of rows that have an edge
  std::vector<std::uint64_t> starts;  // by table, and the end: the first of them
  DeviceArray<Slot> rows = {};        // their numbers, ascending
  DeviceArray<Slot> ids = {};         // by row the number of ids that name it, if counted
  float* values = nullptr;            // rows of `columns` floats
};
// Sorts the edges by row, those of a row in the order given, and sums the gradients that they read,
// of edges with places only where the maximum has that place (bag_maxima.cuh);
// long sums in pieces of fixed lengths, so that the bits are the same each time. `bases`: by table
// and the end, the number of its first row. `room` returns memory of so many bytes for the values.
// Waits for the stream.
DeviceRowSums sum_by_row(const DeviceEdges& edges, std::span<const Slot> bases,
                         const GradientRows& gradients,
                         const std::function<void*(std::uint64_t bytes)>& room, Frequency frequency,
                         cudaStream_t stream);

// Finds the rows that edges name: the result of sum_by_row() without values. Waits for the stream.
DeviceRowSums distinct_rows(const DeviceEdges& edges, std::span<const Slot> bases,
                            cudaStream_t stream);

// Enqueues numbers[k] = k.
void count_up(Slot* numbers, std::uint64_t count, cudaStream_t stream);
// Enqueues out[k] = rows[k] - base.
void rows_from(const Slot* rows, std::uint64_t count, Slot base, std::int64_t* out,
               cudaStream_t stream);

}  // namespace plait
