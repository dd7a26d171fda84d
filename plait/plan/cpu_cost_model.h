// Predicts how long an aggregation by ranks of one host on the CPU takes, from counts of the
// partition and rates that `plait doctor --measure --ranks N` measured with as many ranks.
//
//   bulk       a rank places its own rows, copies each row of the halo once, and sums all edges
//   replicate  the same with all rows of all others
//   get        a rank places its own rows; each remote edge reads a row where its owner has it
//
// The sum reads one row per edge. Such a read takes as long as one from a cache, and more the more
// memory the rows that are read take, for edges that lead far: the share of far edges is estimated
// from the averaged edge span (graph/statistics.h). Rates are those of a rank while all ranks work,
// so that ranks which share cores are slower in the rates already. The step lasts as long as its
// slowest rank's.
#pragma once

#include <cstdint>
#include <optional>

#include "plait/machine/rates.h"
#include "plait/partition/quality.h"
#include "plait/plan/strategy.h"

namespace plait {

// Returns the share of edges, 0 to 1, that lead to any vertex rather than to one nearby, in a graph
// of this averaged edge span. Between random vertices the span is a third of the vertices.
double far_share(double averaged_edge_span, std::uint64_t vertices);

// The rows of an aggregation.
struct CpuRows {
  std::uint64_t width;  // in floats
  double far_share;
};

// Returns the seconds of y = A x. Returns nothing for strategies that the CPU does not have, for
// automatic, and if `rates` lack what the prediction needs.
std::optional<double> predict_cpu_aggregation(Strategy strategy, const PartitionQuality& quality,
                                              const CpuRows& rows, const MachineRates& rates);

}  // namespace plait
