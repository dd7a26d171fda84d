#include <algorithm>

#include "plait/base/gpu.h"
#include "plait/symmetric/device_heap_transports_cuda.h"
#include "plait/world/gather.h"

namespace plait {
std::vector<std::uint64_t> gpu_sharers(World& world) {
  const auto all = gather_values(world, current_gpu_id());
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
