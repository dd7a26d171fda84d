// Sums over ranks of arrays in the memory of GPUs, without a graph. No header of CUDA is needed
// here; a build without CUDA refuses.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/world/world.h"

namespace plait {

class GpuAllReduce {
 public:
  virtual ~GpuAllReduce() = default;
  // Collective: values become the sums over ranks, added in the order of ranks, the same bits on
  // all. Enqueued on the stream. If a rank is lost, sums are NaN, and later calls throw
  // LostRankError.
  virtual void sum(float* values, std::uint64_t count) = 0;
  virtual void sum(double* values, std::uint64_t count) = 0;
};

// Collective. For arrays on the current GPU; all ranks on one host. `stream`: a cudaStream_t.
std::unique_ptr<GpuAllReduce> make_gpu_all_reduce(World& world, void* stream);

}  // namespace plait
