// The edges from which a hop was drawn by values, counted and summed: layers scale sums over a
// sample by them (layer_edges.h).
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/host_device.h"
#include "plait/sample/neighbours.h"

namespace plait {

// One number per target of a hop.
struct EligibleArrays {
  std::uint64_t* counts = nullptr;  // its edges that could be drawn
  // The mean of their weights if they were drawn by weight and not all of them are in the sample,
  // each once; else 0. Null: not wanted.
  float* mean_weights = nullptr;
};

// A hop of a sample that was drawn by values.
struct HopByValues {
  const Sample& sample;
  const Sample::Hop& hop;
  std::span<const std::int64_t> times;  // of the seeds, or empty
  bool again = false;                   // edges were drawn with replacement
};

// Writes these arrays for the targets of a hop.
void eligible_edges(const AnyCsr& graph, const SampleValues& values, const HopByValues& drawn,
                    const EligibleArrays& to);

namespace eligible {

// Returns the mean weight as EligibleArrays has it, from the sum over `count` edges, if `drawn` of
// these edges are in the sample.
PLAIT_HOST_DEVICE inline float mean_weight(double sum, std::uint64_t count, std::uint64_t drawn,
                                           bool again) {
  const bool all = count == 0 || (!again && drawn >= count);
  return all ? 0 : static_cast<float>(sum / static_cast<double>(count));
}

}  // namespace eligible

}  // namespace plait
