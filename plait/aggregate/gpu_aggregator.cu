#include "plait/aggregate/gpu_aggregator.h"
#include "plait/base/error.h"

namespace plait {
std::unique_ptr<Aggregator> make_gpu_aggregator(World&, const AnyCsr&, bool, const Partition&,
                                                const GpuAggregatorOptions&) {
  throw UsageError("not yet");
}
}  // namespace plait
