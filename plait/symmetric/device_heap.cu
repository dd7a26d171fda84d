#include <algorithm>
#include <cstring>

#include "plait/symmetric/device_heap_transports_cuda.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// A GPU as all processes of all hosts know it.
struct GpuId {
  char bytes[16];
  friend bool operator==(const GpuId& a, const GpuId& b) {
    return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
  }
};

}  // namespace

std::vector<std::uint64_t> gpu_sharers(World& world) {
  int gpu = 0;
  check_cuda(cudaGetDevice(&gpu), "the GPU");
  cudaDeviceProp device{};
  check_cuda(cudaGetDeviceProperties(&device, gpu), "a GPU's properties");
  GpuId mine{};
  std::memcpy(mine.bytes, device.uuid.bytes, sizeof mine.bytes);
  const auto all = gather_values(world, mine);
  std::vector<std::uint64_t> sharers;
  for (const GpuId& id : all)
    sharers.push_back(static_cast<std::uint64_t>(std::ranges::count(all, id)));
  return sharers;
}

std::unique_ptr<DeviceHeap> DeviceHeap::create(World& world, std::size_t bytes,
                                               DeviceTransport transport) {
  return transport == DeviceTransport::nvshmem ? make_nvshmem_heap(world, bytes)
                                               : make_vmm_heap(world, bytes);
}

}  // namespace plait
