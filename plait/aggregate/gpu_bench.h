// Times aggregations on GPUs, each checked before it is timed. No header of CUDA is needed here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plait/aggregate/gpu_aggregator.h"

namespace plait {

// Times in ms a step, of the slowest rank, one a repetition, sorted.
struct Times {
  std::vector<double> ms;

  double median() const { return ms.empty() ? 0 : ms[ms.size() / 2]; }
  double least() const { return ms.empty() ? 0 : ms.front(); }
  double most() const { return ms.empty() ? 0 : ms.back(); }
};

struct BenchEffort {
  int repetitions = 7;
  double seconds = 0.03;  // of each, as many steps as fit, at least 5: steps follow each other
                          // without the host, as in training
};

// Collective: the times of `work`, which all ranks enqueue on the aggregator's stream. Throws if a
// wait has failed.
Times time_on_gpus(World& world, GpuAggregator& aggregator, const BenchEffort& effort,
                   const std::function<void()>& work);

// One strategy at one width, with x and y of its own: x[v][k] is a function of v and k.
class GpuBench {
 public:
  // Collective, as all that follows. The graph outlives it.
  GpuBench(World& world, const AnyCsr& graph, const Partition& partition, GpuAggregator& aggregator,
           std::uint64_t width);
  ~GpuBench();

  // The largest relative error of y = A x over all columns of up to 500 rows a rank, spread over
  // its own, against sums in double precision on the CPU. On every rank that of all.
  double check();
  Times time_steps(const BenchEffort& effort);
  // What ran when in one step, by rank, on every rank.
  std::vector<std::vector<TraceSpan>> trace();
  Times time_part(StepPart part, const BenchEffort& effort);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plait
