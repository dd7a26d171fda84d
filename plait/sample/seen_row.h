// The edges of one row as a seed sees them, one type for the CPU and the GPU.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"

namespace plait {

// Pointers to the values of all edges and vertices (SampleValues), each null if there are none.
struct ValuesView {
  const float* weights = nullptr;
  const std::int64_t *edge_times = nullptr, *vertex_times = nullptr;

  PLAIT_HOST_DEVICE bool timed() const { return edge_times != nullptr || vertex_times != nullptr; }
  PLAIT_HOST_DEVICE bool any() const { return weights != nullptr || timed(); }
};

template <VertexId V>
struct SeenRow {
  ValuesView values;
  const V* neighbours = nullptr;  // of the CSR
  EdgeOffset first = 0;           // the row begins here
  std::int64_t now = 0;           // the time of the seed

  PLAIT_HOST_DEVICE float weight(std::uint64_t p) const { return values.weights[first + p]; }
  // The graph has times.
  PLAIT_HOST_DEVICE std::int64_t time(std::uint64_t p) const {
    if (values.vertex_times == nullptr) return values.edge_times[first + p];
    const std::int64_t time = values.vertex_times[neighbours[first + p]];
    if (values.edge_times == nullptr || values.edge_times[first + p] < time) return time;
    return values.edge_times[first + p];
  }
  // Tells whether the edge at position p of the row may be drawn.
  PLAIT_HOST_DEVICE bool is_eligible(std::uint64_t p) const {
    return (values.weights == nullptr || weight(p) > 0) && (!values.timed() || time(p) <= now);
  }
};

}  // namespace plait
