// The rows of a graph whose vertices are grouped into communities, on either device.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"

namespace plait {

// Rows of an undirected graph with weights: of all vertices, or of those of this rank. Pointers are
// to memory of the device.
struct WeightedRows {
  const EdgeOffset *begin = nullptr, *end = nullptr;  // by row: its entries, in the order of rows
  const std::uint32_t* neighbours = nullptr;          // vertices
  const std::uint64_t* weights = nullptr;             // null: all are 1
  const std::uint32_t* vertices = nullptr;            // by row; null: row i is vertex i
  const std::uint64_t* degrees = nullptr;             // edge ends, by vertex
  std::uint32_t rows = 0, count = 0;                  // rows, and vertices of all ranks
  EdgeOffset entries = 0;                             // of the rows
  std::uint64_t total = 0;                            // edge ends of all vertices

  PLAIT_HOST_DEVICE std::uint32_t vertex(std::uint64_t row) const {
    return vertices == nullptr ? static_cast<std::uint32_t>(row) : vertices[row];
  }
  PLAIT_HOST_DEVICE std::uint64_t weight(EdgeOffset e) const {
    return weights == nullptr ? 1 : weights[e];
  }
  // Tells whether an entry of a vertex's row can draw it to another community.
  PLAIT_HOST_DEVICE bool draws(std::uint32_t vertex, EdgeOffset e) const {
    return neighbours[e] != vertex && weight(e) != 0;
  }
};

}  // namespace plait
