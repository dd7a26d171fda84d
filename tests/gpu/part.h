// A rank's part of a graph on its GPU, with the sums that it must get.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/gpu.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {

// A rank's part of a graph in which all ranks read rows of all others.
class Part {
 public:
  Part(World& world, Strategy strategy, cudaStream_t stream = nullptr)
      : world_(world),
        case_(1),
        partition_(make_partition(PartitionScheme::hash, case_.graph, world.size())),
        expected_(case_, {}),
        x_(std::span<const float>(own_part(case_.x, partition_, world.rank(), case_.width))),
        y_(x_.size()),
        aggregator_(make_gpu_aggregator(
            world, case_.graph, false, partition_,
            {.route = {.strategy = strategy}, .max_width = case_.width, .stream = stream})) {}

  void enqueue() { aggregator_->forward({}, x_.data(), y_.data(), case_.width); }
  void enqueue_backward() { aggregator_->backward({}, x_.data(), y_.data(), case_.width); }
  void enqueue_max() {
    aggregator_->over_edges(x_.data(),
                            ExtremumForward{.edges = {}, .width = case_.width, .y = y_.data()});
  }
  std::vector<float> result() { return y_.to_host(); }
  GpuAggregator& aggregator() { return *aggregator_; }
  DeviceArray<float>& y() { return y_; }

  void expect_right(const std::string& when) {
    check_cuda(cudaMemset(y_.data(), 0xff, y_.size() * sizeof(float)), "y");
    enqueue();
    const std::vector<float> y = result();
    aggregator_->check();
    expect_right(y, when);
  }
  void expect_right(const std::vector<float>& y, const std::string& when) const {
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::uint64_t at =
          partition_.vertex(world_.rank(), i / case_.width) * case_.width + i % case_.width;
      expect(std::abs(y[i] - expected_.y[at]) <= 2e-6 * expected_.bound[at],
             fmt::format("{}: row {} is {}, not {}", when, i / case_.width, y[i], expected_.y[at]));
    }
  }

 private:
  World& world_;
  const Case case_;
  const Partition partition_;
  const Expected expected_;
  DeviceArray<float> x_, y_;
  std::unique_ptr<GpuAggregator> aggregator_;
};

inline Strategy strategy_under_test() { return parse_strategy(std::getenv("TEST_STRATEGY")); }

inline std::vector<std::string> strategies_by_signals() {
  std::vector<std::string> names{"pipelined", "partial", "get"};
  if (gpu_count() > 1) names.push_back("bulk");  // NCCL wants a GPU for each rank
  return names;
}

}  // namespace plait::test
