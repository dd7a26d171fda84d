// Replaces measure/cuda in a build without CUDA.
#include "plait/base/gpu.h"
#include "plait/measure/cuda/bench.h"
#include "plait/measure/cuda/gpu_rates.h"
#include "plait/measure/cuda/message_bench.h"
#include "plait/measure/cuda/read_chain.h"
#include "plait/measure/cuda/rival_bench.h"

namespace plait {

MachineRates measure_gpu_rates(World&) {
  use_gpu(0);  // throws
  return {};
}

std::vector<double> time_gpu_read_chain(World&, const ChainQuestion&) {
  use_gpu(0);  // throws
  return {};
}

std::unique_ptr<ComponentSearch> make_gpu_search(Exchange&, std::uint64_t) {
  use_gpu(0);  // throws
  return nullptr;
}

struct GpuBench::State {};

GpuBench::GpuBench(World&, const AnyCsr&, const Partition&, GpuAggregator&, std::uint64_t) {
  use_gpu(0);  // throws
}
GpuBench::~GpuBench() = default;
double GpuBench::check() { return 0; }
Times GpuBench::time_steps(const BenchEffort&) { return {}; }
std::vector<std::vector<TraceSpan>> GpuBench::trace() { return {}; }
Times GpuBench::time_part(StepPart, const BenchEffort&) { return {}; }

class RivalState {};

RivalBench::RivalBench(World&, const AnyCsr&, const Partition&, GetRival, const GetTuning&,
                       std::uint64_t) {
  use_gpu(0);  // throws
}
RivalBench::~RivalBench() = default;
double RivalBench::check() { return 0; }
Times RivalBench::time_steps(const BenchEffort&) { return {}; }

}  // namespace plait
