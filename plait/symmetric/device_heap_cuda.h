// The symmetric heap on GPUs: memory of the same shape on the GPU of every rank, which kernels and
// copies of any rank reach by plain addresses (rank, offset), over NVLink or PCIe.
//
// Memory is made by CUDA's virtual memory management; its descriptors travel as those of the heap
// on the CPU do (descriptor_exchange.h). It has no name anywhere and goes with the last process.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "plait/base/cuda.h"
#include "plait/world/world.h"

namespace plait {

// Collective. How many ranks share this rank's current GPU, itself among them.
std::uint64_t ranks_on_this_gpu(World& world);

class DeviceHeap {
 public:
  // Collective. Every rank gets `bytes` (the same on all) on its current GPU, zeroed. Throws
  // DoesNotFitError before allocating when a GPU has not that much free, UsageError when ranks are
  // on several hosts, Error with both GPUs when one cannot reach the other.
  DeviceHeap(World& world, std::size_t bytes);
  ~DeviceHeap();
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  std::size_t bytes() const { return bytes_; }
  // The part of `rank`, mapped on this GPU. Ordered between ranks by signals (signals_cuda.h).
  std::byte* part(int rank) const { return parts_[static_cast<std::size_t>(rank)].address; }

 private:
  struct Part {
    std::byte* address = nullptr;
    unsigned long long memory = 0;  // a CUmemGenericAllocationHandle
  };
  void map(Part& part, unsigned long long memory, int gpu) const;
  void release();

  std::size_t bytes_;
  std::size_t mapped_ = 0;  // bytes_ up to a whole number of the driver's pages
  std::vector<Part> parts_;
};

}  // namespace plait
