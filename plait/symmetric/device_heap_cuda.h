// The symmetric heap on GPUs: memory of the same shape on the GPU of every rank, which kernels and
// copies of any rank reach by plain addresses (rank, offset), over NVLink or PCIe. One transport a
// file: device_heap_vmm.cu, device_heap_nvshmem.cu; device_heap_host.cu has those for GPUs that do
// not reach each other.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "plait/base/cuda.h"
#include "plait/symmetric/device_transport.h"
#include "plait/world/world.h"

namespace plait {

// Collective. By rank: how many ranks share its current GPU, itself among them.
std::vector<std::uint64_t> gpu_sharers(World& world);

class DeviceHeap {
 public:
  // Collective. Every rank gets `bytes` (the same on all) on its current GPU, zeroed. Throws
  // DoesNotFitError before allocating when a GPU has not that much free, UsageError when the
  // transport is not for ranks that are so placed, Error that says what is missing or which rank
  // cannot reach another's memory.
  static std::unique_ptr<DeviceHeap> create(World& world, std::size_t bytes,
                                            DeviceTransport transport);
  // Collective; as SymmetricHeap::replace().
  static void replace(World& world, std::unique_ptr<DeviceHeap>& heap, std::size_t bytes,
                      DeviceTransport transport);
  // All ranks destroy theirs, in the same order. Waits for the GPU; NVSHMEM's for all ranks too,
  // unless an exception destroys it.
  virtual ~DeviceHeap() = default;
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  std::size_t bytes() const { return bytes_; }
  // The part of `rank`, mapped on this GPU; of DeviceTransport::own this rank's, and null for the
  // others. Ordered between ranks by signals (signals_cuda.h).
  std::byte* part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

 protected:
  DeviceHeap(std::size_t bytes, int ranks)
      : bytes_(bytes), parts_(static_cast<std::size_t>(ranks)) {}

  const std::size_t bytes_;
  std::vector<std::byte*> parts_;  // by rank; null until they are mapped
};

}  // namespace plait
