#include "plait/measure/bench.h"

#include <algorithm>
#include <cmath>

#include "plait/base/timer.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

class CpuBench : public AggregateBench {
 public:
  CpuBench(World& world, const AnyCsr& graph, const Partition& partition, Aggregator& aggregator,
           std::uint64_t width)
      : world_(world),
        graph_(graph),
        partition_(partition),
        aggregator_(aggregator),
        width_(width),
        x_(aggregator.own() * width),
        y_(aggregator.own() * width) {
    for (std::uint64_t i = 0; i < x_.size(); ++i)
      x_[i] = bench_feature(partition.vertex(world.rank(), i / width), i % width);
    aggregator.reserve(width);
  }

  double check() override {
    std::ranges::fill(y_, std::nanf(""));
    step();
    return largest_of_all(world_,
                          worst_error(graph_, partition_, world_.rank(), width_, y_.data()));
  }

  Times time_steps(const BenchEffort& effort) override {
    return plait::time_steps(world_, effort, [this](int steps) {
      for (int k = 0; k < steps; ++k) step();
    });
  }

 private:
  void step() { aggregator_.forward({}, x_.data(), y_.data(), width_); }

  World& world_;
  const AnyCsr& graph_;
  const Partition& partition_;
  Aggregator& aggregator_;
  const std::uint64_t width_;
  std::vector<float> x_, y_;
};

}  // namespace

Times time_steps(World& world, const BenchEffort& effort, const std::function<void(int)>& run) {
  // Returns the slowest rank's ms per step.
  const auto time = [&](int steps) {
    world.barrier();
    const Stopwatch watch;
    run(steps);
    return largest_of_all(world, watch.seconds() * 1e3 / steps);
  };
  const double once = time(1);  // the same on every rank
  const int steps = static_cast<int>(std::clamp(effort.seconds * 1e3 / once, 1.0, 1000.0));
  Times times;
  for (int r = 0; r < effort.repetitions; ++r) times.ms.push_back(time(steps));
  std::ranges::sort(times.ms);
  return times;
}

double worst_error(const AnyCsr& graph, const Partition& partition, int rank, std::uint64_t width,
                   const float* y) {
  const std::uint64_t own = partition.size(rank), step = std::max<std::uint64_t>(1, own / 500);
  double worst = 0;
  std::vector<double> expected(width);
  for (std::uint64_t row = 0; row < own; row += step) {
    std::ranges::fill(expected, 0.0);
    std::visit(
        [&](const auto& csr) {
          for (const std::uint64_t j : csr.row(partition.vertex(rank, row)))
            for (std::uint64_t k = 0; k < width; ++k) expected[k] += bench_feature(j, k);
        },
        graph);
    for (std::uint64_t k = 0; k < width; ++k) {
      const double sum = y[row * width + k];
      const double off = std::abs(sum - expected[k]) / std::max(expected[k], 1e-30);
      worst = std::max(worst, std::isfinite(off) && !(expected[k] == 0 && sum != 0) ? off : 1e30);
    }
  }
  return worst;
}

std::unique_ptr<AggregateBench> make_cpu_bench(World& world, const AnyCsr& graph,
                                               const Partition& partition, Aggregator& aggregator,
                                               std::uint64_t width) {
  return std::make_unique<CpuBench>(world, graph, partition, aggregator, width);
}

}  // namespace plait
