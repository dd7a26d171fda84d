// Aggregation on GPUs: one a rank, the current one where make_gpu_aggregator() is called. No header
// of CUDA is needed here; a build without CUDA refuses.
#pragma once

#include <memory>

#include "plait/aggregate/aggregate.h"
#include "plait/base/dtype.h"

namespace plait {

struct GpuAggregatorOptions {
  Strategy strategy = Strategy::automatic;
  ShardOptions shards;  // `halo` follows from the strategy
  std::uint64_t max_width = 0;
  DType wire = DType::f32;  // how rows travel between GPUs: f32 or bf16
  void* stream = nullptr;   // the cudaStream_t that x and y are made and used on
};

// Collective. Pointers that forward() and backward() take are to memory of the GPU; the work is
// enqueued on the stream, and whoever reads y follows on the stream. A rank that is lost while
// others wait for its rows ends them through World's watch; no wait on the GPU is longer than a
// minute, after which cost() throws.
std::unique_ptr<Aggregator> make_gpu_aggregator(World& world, const AnyCsr& graph, bool symmetric,
                                                const Partition& partition,
                                                const GpuAggregatorOptions& options);

}  // namespace plait
