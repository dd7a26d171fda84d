#include <algorithm>
#include <functional>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/measure/cuda/bench.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

__global__ void fill(const std::uint64_t* vertices, std::uint64_t size, std::uint64_t width,
                     float* x) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{256} + threadIdx.x;
  if (i < size) x[i] = bench_feature(vertices[i / width], i % width);
}

}  // namespace

Times time_on_gpus(World& world, GpuAggregator& aggregator, const BenchEffort& effort,
                   const std::function<void()>& work) {
  // Times steps in a row, on all ranks at once. Returns the slowest rank's ms per step.
  const auto time = [&](int steps) {
    check_cuda(cudaDeviceSynchronize(), "work on the GPU");
    world.barrier();
    DeviceEvent start, stop;
    start.record(nullptr);
    for (int k = 0; k < steps; ++k) work();
    stop.record(nullptr);
    const double ms = stop.since(start) / static_cast<double>(steps);
    aggregator.cost();  // throws if a wait has failed
    return largest_of_all(world, ms);
  };
  time(2);
  const double once = time(3);  // the same on every rank
  const int steps = std::clamp(static_cast<int>(effort.seconds * 1e3 / once), 5, 1000);
  Times times;
  for (int r = 0; r < effort.repetitions; ++r) times.ms.push_back(time(steps));
  std::ranges::sort(times.ms);
  return times;
}

struct GpuBench::State {
  World& world;
  const AnyCsr& graph;
  const Partition& partition;
  GpuAggregator& aggregator;
  std::uint64_t width;
  DeviceArray<float> x, y;

  void step() { aggregator.forward({}, x.data(), y.data(), width); }

  Times measure(const BenchEffort& effort, const std::function<void()>& work) {
    return time_on_gpus(world, aggregator, effort, work);
  }
};

GpuBench::GpuBench(World& world, const AnyCsr& graph, const Partition& partition,
                   GpuAggregator& aggregator, std::uint64_t width)
    : state_(new State{world, graph, partition, aggregator, width, {}, {}}) {
  State& s = *state_;
  const std::uint64_t own = aggregator.own();
  std::vector<std::uint64_t> vertices(own);
  for (std::uint64_t r = 0; r < own; ++r) vertices[r] = partition.vertex(world.rank(), r);
  const DeviceArray<std::uint64_t> there{std::span<const std::uint64_t>(vertices)};
  s.x = DeviceArray<float>(own * width);
  s.y = DeviceArray<float>(own * width);
  if (own * width > 0)
    fill<<<static_cast<unsigned>((own * width + 255) / 256), 256>>>(there.data(), own * width,
                                                                    width, s.x.data());
  check_cuda(cudaDeviceSynchronize(), "x");
  aggregator.reserve(width);
}

GpuBench::~GpuBench() = default;

double GpuBench::check() {
  State& s = *state_;
  if (s.y.size() > 0)
    check_cuda(cudaMemset(s.y.data(), 0xff, s.y.size() * sizeof(float)), "y");  // NaN
  s.step();
  s.aggregator.cost();
  const std::vector<float> y = s.y.to_host();
  return largest_of_all(s.world,
                        worst_error(s.graph, s.partition, s.world.rank(), s.width, y.data()));
}

Times GpuBench::time_steps(const BenchEffort& effort) {
  return state_->measure(effort, [this] { state_->step(); });
}

std::vector<std::vector<TraceSpan>> GpuBench::trace() {
  State& s = *state_;
  s.step();
  check_cuda(cudaDeviceSynchronize(), "work on the GPU");
  s.world.barrier();
  const std::string mine = to_text(s.aggregator.trace(s.x.data(), s.y.data(), s.width));
  std::vector<std::vector<TraceSpan>> ranks;
  for (const auto& text : s.world.all_gather(std::as_bytes(std::span(mine))))
    ranks.push_back(spans_of_text({reinterpret_cast<const char*>(text.data()), text.size()}));
  return ranks;
}

Times GpuBench::time_part(StepPart part, const BenchEffort& effort) {
  State& s = *state_;
  return s.measure(effort,
                   [&, part] { s.aggregator.run_part(part, s.x.data(), s.y.data(), s.width); });
}

}  // namespace plait
