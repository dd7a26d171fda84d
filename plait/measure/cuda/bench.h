// Benchmarks on GPUs (measure/bench.h). This header needs no header of CUDA.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/measure/bench.h"

namespace plait {

// Collective. Returns the times of `work`, which enqueues one step on the aggregator's stream on
// every rank. Waits for the GPU. Throws LostRankError if a wait on the GPU has failed.
Times time_on_gpus(World& world, GpuAggregator& aggregator, const BenchEffort& effort,
                   const std::function<void()>& work);

// One strategy at one width, with its own x and y in the GPU's memory. All calls wait for the GPU.
class GpuBench : public AggregateBench {
 public:
  // Makes x and y, and room for rows of `width` floats. All references outlive this object.
  GpuBench(World& world, const AnyCsr& graph, const Partition& partition, GpuAggregator& aggregator,
           std::uint64_t width);
  ~GpuBench() override;

  double check() override;
  Times time_steps(const BenchEffort& effort) override;
  // Returns on every rank, by rank, which part of one step ran when.
  std::vector<std::vector<TraceSpan>> trace();
  // Times one part of a step alone. Throws UsageError as run_part() does.
  Times time_part(StepPart part, const BenchEffort& effort);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plait
