// For a build without CUDA.
#include "plait/aggregate/gpu_aggregator.h"
#include "plait/base/gpu.h"

namespace plait {

std::unique_ptr<GpuAggregator> make_gpu_aggregator(World&, const AnyCsr&, bool, const Partition&,
                                                   const GpuAggregatorOptions&) {
  use_gpu(0);  // throws
  return nullptr;
}

std::unique_ptr<Aggregator> on_host_memory(std::unique_ptr<GpuAggregator> aggregator) {
  return aggregator;
}

}  // namespace plait
