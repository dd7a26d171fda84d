// The kernel of strategy `get` on unified memory: the rival MGG-UVM of MGG (OSDI 2023,
// section 7.1).
//
// CUDA's managed memory belongs to one process. Here rank 0's process therefore drives the GPUs of
// all ranks, and the others wait. One managed array holds the rows of all vertices. Each step,
// every GPU writes its own rows there, and then sums, reading remote rows as `get` does: pages that
// are not on the GPU that reads or writes them are brought by page faults, from the GPU that has
// them. The host copies nothing, and nothing is prefetched or advised. This header needs no header
// of CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/aggregate/bench.h"
#include "plait/plan/get_tuning.h"

namespace plait {

class ManagedBench : public AggregateBench {
 public:
  // Collective; each rank has a GPU. Places the graph on all of them. The references outlive this
  // object. Throws, on all ranks, Error if a GPU does not bring pages on demand or is not seen by
  // rank 0's process, DoesNotFitError if the array is larger than the memory that is free on any
  // GPU, so that no page is ever driven out.
  ManagedBench(World& world, const AnyCsr& graph, const Partition& partition,
               const GetTuning& tuning, std::uint64_t width);
  ~ManagedBench() override;

  double check() override;
  Times time_steps(const BenchEffort& effort) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plait
