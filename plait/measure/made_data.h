// Features and labels for benchmarks of models, on graphs that have none or others.
#pragma once

#include <cstdint>

#include "plait/graph/dataset.h"
#include "plait/table/table_layout.h"
#include "plait/world/world.h"

namespace plait {

// The data to make. 0: the dataset's own are kept.
struct MadeData {
  std::uint64_t width = 0;   // of features
  std::int32_t classes = 0;  // of labels, one per vertex
  std::uint64_t seed = 0;    // of labels
};

// Collective. Returns the dataset with made data, and with one split in which all examples train.
// Data depend on a vertex' number before renumbering alone (Dataset::number), so they are the same
// on any number of ranks:
//   features   bench_feature() of measure/bench.h; the dataset gets their width but no values,
//              because made_rows() makes rows where they are read
//   labels     uniform over the classes; the graph is then no set of graphs
// Throws DoesNotFitError on all ranks if the labels do not fit.
Dataset with_made_data(World& world, Dataset dataset, const MadeData& made);

// Returns made features by ids of the dataset's vertices, whose numbers it shares; none for width
// 0.
TableSource made_rows(const Dataset& dataset, std::uint64_t width);

// Returns the label of a vertex, by its number: uniform in 0 .. classes - 1.
std::int32_t made_label(std::uint64_t number, std::int32_t classes, std::uint64_t seed);

}  // namespace plait
