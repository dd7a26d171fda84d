// Heaps for GPUs that need not reach each other's memory. Parts for signals are in memory of the
// host that all processes share and all GPUs read and write, over PCIe: a few words each time.
// Parts for rows that others move (NCCL, or the host) are on each GPU, and only its rank reaches
// them.
#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap_transports.cuh"
#include "plait/symmetric/heap.h"

namespace plait {
namespace {

class HostHeap : public DeviceHeap {
 public:
  // Collective.
  HostHeap(World& world, std::size_t bytes)
      : DeviceHeap(bytes, world.size()), memory_(SymmetricHeap::create(world, bytes)) {}
  ~HostHeap() override {
    cudaDeviceSynchronize();  // nothing that was enqueued touches it any more
    for (std::size_t rank = 0; rank < parts_.size(); ++rank)
      if (parts_[rank] != nullptr) cudaHostUnregister(memory_->part(static_cast<int>(rank)).data());
  }

  void map(int rank) {
    const std::span<std::byte> part = memory_->part(rank);
    check_pinned(cudaHostRegister(part.data(), part.size(),
                                  cudaHostRegisterMapped | cudaHostRegisterPortable),
                 part.size(), "memory of the host that GPUs share");
    void* address = nullptr;
    const auto status = cudaHostGetDevicePointer(&address, part.data(), 0);
    if (status != cudaSuccess) cudaHostUnregister(part.data());
    check_cuda(status, "memory of the host that GPUs share");
    parts_[static_cast<std::size_t>(rank)] = static_cast<std::byte*>(address);
  }

 private:
  std::unique_ptr<SymmetricHeap> memory_;
};

class OwnHeap : public DeviceHeap {
 public:
  OwnHeap(std::size_t bytes, const World& world)
      : DeviceHeap(bytes, world.size()), memory_(std::max<std::size_t>(bytes, 1)) {
    parts_[static_cast<std::size_t>(world.rank())] = memory_.data();
    check_cuda(cudaMemset(memory_.data(), 0, memory_.size()), "own rows");
    check_cuda(cudaDeviceSynchronize(), "own rows");
  }
  ~OwnHeap() override { cudaDeviceSynchronize(); }

 private:
  DeviceArray<std::byte> memory_;
};

}  // namespace

void require_host_room(World&, std::size_t, std::size_t) {}  // SymmetricHeap::create() checks

std::unique_ptr<DeviceHeap> make_host_heap(World& world, std::size_t bytes) {
  auto heap = std::make_unique<HostHeap>(world, bytes);
  agree_on_failure(world, failure_of([&] {
                     for (int rank = 0; rank < world.size(); ++rank) heap->map(rank);
                   }));
  return heap;
}

std::unique_ptr<DeviceHeap> make_own_heap(World& world, std::size_t bytes) {
  std::unique_ptr<DeviceHeap> heap;
  agree_on_failure(world, failure_of([&] { heap = std::make_unique<OwnHeap>(bytes, world); }));
  return heap;
}

}  // namespace plait
