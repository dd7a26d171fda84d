// Sums over ranks of arrays in the memory of GPUs, without a graph. This header needs no header of
// CUDA; a build without CUDA throws UsageError.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/world/world.h"

namespace plait {

// Sums arrays over ranks, on the stream that it was made for.
class GpuAllReduce {
 public:
  virtual ~GpuAllReduce() = default;
  // Collective. Replaces `count` values in the GPU's memory by their sums over ranks, added in the
  // order of ranks, so that all ranks get the same bits. Enqueued on the stream; does not wait. If
  // a rank is lost, sums are NaN, and later calls throw LostRankError.
  virtual void sum(float* values, std::uint64_t count) = 0;
  virtual void sum(double* values, std::uint64_t count) = 0;
};

// Collective. For arrays on the current GPU of each rank; all ranks are on one host. `stream`: a
// cudaStream_t that outlives the object.
std::unique_ptr<GpuAllReduce> make_gpu_all_reduce(World& world, void* stream);

}  // namespace plait
