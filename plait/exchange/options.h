// The settings with which an exchange is made, on either device. This header needs no header of
// CUDA.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/placement/graph_shards.h"
#include "plait/plan/route.h"

namespace plait {

// Settings of the strategies on GPUs, besides those of a Route. None of them changes results.
struct GpuTuning {
  // For `pipelined` and `partial`: shares of the halo (0 to 1, ascending) at which passes end.
  // Empty: plan/halo_schedule.h chooses. The same on all ranks.
  std::vector<double> pass_shares = {};
  // For comparisons: `bulk` sums with cuSPARSE, without scaling.
  bool sum_by_cusparse = false;
  // Most edges of a neighbour group in sums of rows that are here, a multiple of 32; 0: by the rule
  // of kernels/row_cut.h.
  std::uint32_t group_edges = 0;
};

// Options of placing a graph and of moving its rows. They are the same on all ranks, but for
// `stream`.
struct ExchangeOptions {
  Route route;
  ShardOptions shards;          // `halo` and `order` follow from the route
  std::uint64_t max_width = 0;  // of rows, in units of 4 bytes, such as floats
  void* stream = nullptr;       // on a GPU: the cudaStream_t that rows are made and used on
  GpuTuning tuning = {};
};

// Parts of an aggregation on GPUs that are measured alone. Their result means nothing.
enum class StepPart {
  link,  // moving the halo across the link
  sum,   // one pass over all edges
};

}  // namespace plait
