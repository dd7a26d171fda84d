// For a build without CUDA.
#include "plait/aggregate/gpu_bench.h"
#include "plait/base/gpu.h"

namespace plait {

struct GpuBench::State {};

GpuBench::GpuBench(World&, const AnyCsr&, const Partition&, GpuAggregator&, std::uint64_t) {
  use_gpu(0);  // throws
}
GpuBench::~GpuBench() = default;
double GpuBench::check() { return 0; }
Times GpuBench::time_steps(const BenchEffort&) { return {}; }
std::vector<std::vector<TraceSpan>> GpuBench::trace() { return {}; }
Times GpuBench::time_part(StepPart, const BenchEffort&) { return {}; }

}  // namespace plait
