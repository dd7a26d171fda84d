// The symmetric heap on GPUs: memory of the same shape on the GPU of every rank, which kernels and
// copies of any rank reach by plain addresses (rank, offset), over NVLink or PCIe. Each transport
// has one file: cuda/heap_vmm.cu, cuda/heap_nvshmem.cu; cuda/heap_host.cu has the transports for
// GPUs that do not reach each other.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/transport.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Returns by rank how many ranks share its current GPU, itself among them.
std::vector<std::uint64_t> gpu_sharers(World& world);

// The parts of all ranks, mapped on this rank's GPU.
class DeviceHeap {
 public:
  // Collective. Every rank gets `bytes` (the same on all) on its current GPU, zeroed. Throws
  // DoesNotFitError before allocating if a GPU has less free, UsageError if the transport is not
  // for ranks that are so placed, and an Error that says what is missing or which rank cannot reach
  // another's memory.
  static std::unique_ptr<DeviceHeap> create(World& world, std::size_t bytes,
                                            DeviceTransport transport);
  // Collective, as SymmetricHeap::replace().
  static void replace(World& world, std::unique_ptr<DeviceHeap>& heap, std::size_t bytes,
                      DeviceTransport transport);
  // All ranks destroy their heaps in the same order. Waits for the GPU; NVSHMEM's heap waits for
  // all ranks too, unless an exception destroys it.
  virtual ~DeviceHeap() = default;
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  std::size_t bytes() const { return bytes_; }
  // Returns the part of `rank`, mapped on this GPU; with DeviceTransport::own null for other ranks.
  // With vmm, parts of whole pages (2 MiB) are mapped one after the other.
  // Signals order accesses between ranks (cuda/signals.cuh).
  std::byte* part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

 protected:
  DeviceHeap(std::size_t bytes, int ranks)
      : bytes_(bytes), parts_(static_cast<std::size_t>(ranks)) {}

  const std::size_t bytes_;
  std::vector<std::byte*> parts_;  // by rank; null until they are mapped
};

}  // namespace plait
