// Predicts how long an aggregation across GPUs takes, from counts of the partition and the
// constants of the machine. A prediction is made before any memory is taken, and is a function of
// its arguments alone, so that it can be tested on a machine without GPUs.
//
//   pipelined  sums are made while rows arrive, by the schedule of halo_schedule.h; or, if that
//              takes longer, until the rows that others list have been picked and have left
//   partial    the same for the rows and sums that cross; sums for others are made before
//   bulk       all rows arrive through NCCL, then one pass sums all edges
//   replicate  the same with all rows of all others
//   get        each remote edge reads a row of another GPU's memory, beside local edges
//
// A step lasts as long as its slowest rank's. docs/performance.md compares predictions with times
// that were measured on four GPUs.
#pragma once

#include <cstdint>
#include <optional>

#include "plait/machine/machine.h"
#include "plait/partition/quality.h"
#include "plait/plan/route.h"

namespace plait {

// Returns the seconds of y = A x by the route's strategy and wire type, where rows have `width`
// floats and `quality` describes the route's partition. Returns nothing for strategies without a
// model: automatic, paged, and all strategies on the CPU.
std::optional<double> predict_aggregation(const Route& route, const PartitionQuality& quality,
                                          std::uint64_t width,
                                          const MachineProfile& profile = machine());

// Returns the passes in which pipelined sums rows of `width` floats on the rank that is brought
// most rows.
int scheduled_passes(const Route& route, const PartitionQuality& quality, std::uint64_t width,
                     const MachineProfile& profile = machine());

}  // namespace plait
