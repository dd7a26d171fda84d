// Times aggregations on GPUs. This header needs no header of CUDA.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plait/aggregate/cuda/aggregator.h"

namespace plait {

// Times per step in ms, of the slowest rank: one per repetition, ascending.
struct Times {
  std::vector<double> ms;

  double median() const { return ms.empty() ? 0 : ms[ms.size() / 2]; }
  double least() const { return ms.empty() ? 0 : ms.front(); }
  double most() const { return ms.empty() ? 0 : ms.back(); }
};

// The effort that a measurement takes.
struct BenchEffort {
  int repetitions = 7;
  // Seconds per repetition, filled with as many steps as fit, 5 to 1,000, which follow each other
  // without the host, as in training.
  double seconds = 0.03;
};

// Collective. Returns the times of `work`, which enqueues one step on the aggregator's stream on
// every rank. Waits for the GPU. Throws LostRankError if a wait on the GPU has failed.
Times time_on_gpus(World& world, GpuAggregator& aggregator, const BenchEffort& effort,
                   const std::function<void()>& work);

// One strategy at one width, with its own x and y in the GPU's memory: x[v][k] is a function of v
// and k. All calls are collective and wait for the GPU.
class GpuBench {
 public:
  // Makes x and y, and room for rows of `width` floats. All references outlive this object.
  GpuBench(World& world, const AnyCsr& graph, const Partition& partition, GpuAggregator& aggregator,
           std::uint64_t width);
  ~GpuBench();

  // Runs y = A x once and returns its largest relative error over all ranks. Compares all columns
  // of about 500 rows per rank, spread over its own rows, with sums in double precision on the CPU.
  double check();
  // Times whole steps.
  Times time_steps(const BenchEffort& effort);
  // Returns on every rank, by rank, which part of one step ran when.
  std::vector<std::vector<TraceSpan>> trace();
  // Times one part of a step alone. Throws UsageError as run_part() does.
  Times time_part(StepPart part, const BenchEffort& effort);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plait
