// Times aggregations, and checks what they compute before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/base/host_device.h"

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
  // Seconds per repetition, filled with as many steps as fit, 5 to 1,000 on GPUs and 1 to 1,000 on
  // the CPU, which follow each other as in training.
  double seconds = 0.03;
};

// Collective. Times steps in a row on all ranks at once. `run(n)` takes n steps, and returns when
// this rank has done them.
Times time_steps(World& world, const BenchEffort& effort, const std::function<void(int)>& run);

// The features that benchmarks sum. They are positive, so that sums do not cancel, and exact in
// bf16.
PLAIT_HOST_DEVICE inline float bench_feature(std::uint64_t vertex, std::uint64_t column) {
  const std::uint64_t hash = (vertex * 0x9E3779B97F4A7C15u + column) * 0xD1342543DE82EF95u;
  return static_cast<float>(1 + (hash >> 40) % 255) / 256;
}

// Returns the largest relative error of this rank's rows of y = A x, where x[v][k] is
// bench_feature(v, k). Compares all columns of about 500 rows, spread over own rows, with sums in
// double precision. y: own rows x width, without gaps.
double worst_error(const AnyCsr& graph, const Partition& partition, int rank, std::uint64_t width,
                   const float* y);

// One way to compute y = A x, at one width, with its own x and y. All calls are collective.
class AggregateBench {
 public:
  virtual ~AggregateBench() = default;

  // Runs y = A x once and returns the worst_error() of all ranks.
  virtual double check() = 0;
  // Times whole steps.
  virtual Times time_steps(const BenchEffort& effort) = 0;
};

// Returns a bench of an aggregator on the CPU, and makes room for rows of `width` floats. All
// references outlive it. Throws as Aggregator::reserve() does.
std::unique_ptr<AggregateBench> make_cpu_bench(World& world, const AnyCsr& graph,
                                               const Partition& partition, Aggregator& aggregator,
                                               std::uint64_t width);

}  // namespace plait
