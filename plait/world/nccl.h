// NCCL, found at run time: beside libtorch, or where the system has it. Only strategies that use it
// need it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "plait/world/world.h"

namespace plait {

// A communicator of all ranks, each on one GPU.
class Nccl {
 public:
  // Collective; each rank is on a GPU of its own, the current one. Throws an Error that says what
  // is missing, on all ranks. If NCCL itself fails on one rank, the others are told (together()).
  static std::unique_ptr<Nccl> join(World& world);
  virtual ~Nccl() = default;
  // Collective. send[r] goes to rank r, received[r] comes from it, in memory of the GPU; sizes must
  // agree on both sides, and own parts are not touched. Enqueued on the stream, a cudaStream_t;
  // does not wait.
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received, void* stream) = 0;
};

}  // namespace plait
