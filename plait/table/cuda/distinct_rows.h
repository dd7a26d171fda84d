// Gathers on a GPU in which each distinct row crosses a link at most once, however often its id
// comes up. Worth the time where ids repeat. This header needs no header of CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/table/gather_rows.h"

namespace plait {

// The memory for finding distinct rows, on the current GPU.
class GpuDistinctGather {
 public:
  // Takes bytes(most) of memory, for at most so many ids per gather, and waits for the GPU. Throws
  // DoesNotFitError, also for 2^30 ids or more.
  explicit GpuDistinctGather(std::uint64_t most);
  ~GpuDistinctGather();
  static std::uint64_t bytes(std::uint64_t most);

  // Enqueues the gather on the cudaStream_t; results are those of gpu_gather_rows(). One stream at
  // a time. Throws UsageError if there are more ids than were foreseen.
  void gather(const GatherRows& args, void* stream);

 private:
  struct Memory;
  std::uint64_t most_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace plait
