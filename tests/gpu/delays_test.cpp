// Steps on GPUs whose parts begin late at random on each rank: without any of a step's waits, a
// rank would read rows of the wrong step (scripts/mutate shows it). Ranks share GPUs where there
// are fewer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/delay.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/support/random_graph.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

constexpr int kSteps = 20;

// Returns the greatest of each row's neighbours, column by column; 0 without any.
std::vector<double> maxima(const Case& c) {
  std::vector<double> y(c.x.size());
  for (std::uint64_t i = 0; i < c.graph.vertices(); ++i)
    for (std::uint64_t k = 0; k < c.width; ++k) {
      double most = c.graph.degree(i) > 0 ? -INFINITY : 0;
      for (const std::uint64_t j : c.graph.row(i))
        most = std::max<double>(most, c.x[j * c.width + k]);
      y[i * c.width + k] = most;
    }
  return y;
}

class Steps {
 public:
  Steps(World& world, const Case& c)
      : world_(world),
        case_(c),
        partition_(make_partition(PartitionScheme::hash, c.graph, world.size())),
        own_(own_part(c.x, partition_, world.rank(), c.width)),
        x_(own_.size()),
        y_(own_.size()) {}

  // Rows differ from step to step, and the next step overwrites each step's rows. `work` makes y
  // from x.
  template <class Work>
  void check(const std::string& name, const std::vector<double>& expected,
             const std::vector<double>& bound, const Work& work) {
    std::vector<std::vector<float>> results;
    for (int step = 1; step <= kSteps; ++step) {
      std::vector<float> rows(own_);
      for (float& value : rows) value *= static_cast<float>(step);
      // The memory is pageable: the call returns when the rows have been read, in order with the
      // stream.
      check_cuda(cudaMemcpyAsync(x_.data(), rows.data(), rows.size() * sizeof(float),
                                 cudaMemcpyHostToDevice, nullptr),
                 "x");
      work(x_.data(), y_.data());
      results.emplace_back(own_.size());
      check_cuda(cudaMemcpyAsync(results.back().data(), y_.data(), own_.size() * sizeof(float),
                                 cudaMemcpyDeviceToHost, nullptr),
                 "y");
    }
    check_cuda(cudaDeviceSynchronize(), "steps");
    for (int step = 1; step <= kSteps; ++step)
      for (std::size_t i = 0; i < own_.size(); ++i) {
        const std::uint64_t at =
            partition_.vertex(world_.rank(), i / case_.width) * case_.width + i % case_.width;
        const double y = results[static_cast<std::size_t>(step - 1)][i];
        if (!(std::abs(y - step * expected[at]) <= 4e-6 * step * bound[at]))
          throw Error(fmt::format("{}, step {}: row {} is {}, not {}", name, step, i / case_.width,
                                  y, step * expected[at]));
      }
  }

  std::span<const float> own_values() const { return own_; }
  std::unique_ptr<GpuAggregator> aggregator(Strategy strategy) {
    return make_gpu_aggregator(world_, case_.graph, false, partition_,
                               {.route = {.strategy = strategy}, .max_width = case_.width});
  }

 private:
  World& world_;
  const Case& case_;
  const Partition partition_;
  const std::vector<float> own_;
  DeviceArray<float> x_, y_;
};

// The way in which rows cross in `pipelined`.
enum class Crossing { kernel, copies };

// Collective. Checks that steps of the case are of the kind that they are there to test.
void expect_crossing(Steps& steps, const Case& c, Crossing crossing) {
  const auto aggregator = steps.aggregator(Strategy::pipelined);
  const DeviceArray<float> x(steps.own_values());
  DeviceArray<float> y(x.size());
  bool copies = false;
  for (const TraceSpan& span : aggregator->trace(x.data(), y.data(), c.width))
    copies |= span.name.starts_with("push to rank");
  expect(copies == (crossing == Crossing::copies), "rows cross in another way than the test means");
}

void check_case(World& world, const Case& c, Crossing crossing) {
  const Expected expected(c, {});
  Steps steps(world, c);
  expect_crossing(steps, c, crossing);
  for (const Strategy strategy : {Strategy::pipelined, Strategy::partial, Strategy::get}) {
    const auto aggregator = steps.aggregator(strategy);
    const auto forward = [&](const float* x, float* y) { aggregator->forward({}, x, y, c.width); };
    steps.check(std::string(to_string(strategy)), expected.y, expected.bound, forward);
    if (strategy != Strategy::pipelined) continue;
    const std::vector<double> most = maxima(c);
    std::vector<double> bound(most);
    for (double& value : bound) value = std::abs(value);
    steps.check("maxima", most, bound, [&](const float* x, float* y) {
      aggregator->over_edges(x, ExtremumForward{.edges = {}, .width = c.width, .y = y});
    });
  }
}

void check_reduce(World& world) {
  const Case c(1);
  Steps steps(world, c);
  const auto aggregator = steps.aggregator(Strategy::pipelined);
  constexpr std::size_t kValues = 5000;
  for (int step = 1; step <= kSteps; ++step) {
    const std::vector<float> mine(kValues, static_cast<float>(step * (world.rank() + 1)));
    DeviceArray<float> values{std::span<const float>(mine)};
    aggregator->all_reduce_sum(values.data(), kValues);
    aggregator->all_reduce_sum(values.data(), kValues);
    const auto ranks = static_cast<float>(world.size());
    const float sum = static_cast<float>(step) * ranks * (ranks + 1) / 2 * ranks;
    expect(values.to_host() == std::vector<float>(kValues, sum),
           fmt::format("sums over ranks, step {}", step));
  }
}

const RankProgram delayed("gpu delayed steps", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const auto seed = static_cast<std::uint64_t>(world.rank());
  switch_delays(seed, std::chrono::milliseconds(3));
  check_case(world, Case(random_csr<std::uint32_t>(120, 2000, 1, true), 33, 1), Crossing::kernel);
  // Rows have more than 24 MiB, which take the host longer than the delays before.
  switch_delays(seed, std::chrono::milliseconds(30));
  check_case(world, Case(random_csr<std::uint32_t>(40000, 400000, 3, true), 300, 3),
             Crossing::copies);
  check_reduce(world);
});

TEST(GpuDelayedSteps, KeepTheirRowsApart) {
  const Outcome outcome =
      run_job({.program = "gpu delayed steps", .ranks = 3, .timeout_ms = 20000});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
