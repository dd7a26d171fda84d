#include <algorithm>
#include <cmath>
#include <functional>

#include "plait/aggregate/cuda/bench.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// Values are positive, so that sums do not cancel, and exact in bf16.
__host__ __device__ float value_of(std::uint64_t vertex, std::uint64_t column) {
  const std::uint64_t hash = (vertex * 0x9E3779B97F4A7C15u + column) * 0xD1342543DE82EF95u;
  return static_cast<float>(1 + (hash >> 40) % 255) / 256;
}

__global__ void fill(const std::uint64_t* vertices, std::uint64_t size, std::uint64_t width,
                     float* x) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{256} + threadIdx.x;
  if (i < size) x[i] = value_of(vertices[i / width], i % width);
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

  double error_of_row(std::uint64_t row, const float* sums) const {
    const std::uint64_t vertex = partition.vertex(world.rank(), row);
    std::vector<double> expected(width);
    std::visit(
        [&](const auto& csr) {
          for (const std::uint64_t j : csr.row(vertex))
            for (std::uint64_t k = 0; k < width; ++k) expected[k] += value_of(j, k);
        },
        graph);
    double worst = 0;
    for (std::uint64_t k = 0; k < width; ++k) {
      const double off = std::abs(sums[k] - expected[k]) / std::max(expected[k], 1e-30);
      worst =
          std::max(worst, std::isfinite(off) && !(expected[k] == 0 && sums[k] != 0) ? off : 1e30);
    }
    return worst;
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
  const std::uint64_t own = s.aggregator.own(), step = std::max<std::uint64_t>(1, own / 500);
  double worst = 0;
  for (std::uint64_t row = 0; row < own; row += step)
    worst = std::max(worst, s.error_of_row(row, y.data() + row * s.width));
  return largest_of_all(s.world, worst);
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
