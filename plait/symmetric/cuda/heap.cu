#include <algorithm>
#include <array>

#include "plait/base/gpu.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap_transports.cuh"

namespace plait {
std::vector<std::uint64_t> gpu_sharers(World& world) {
  const auto all = gather_found(world, current_gpu_id);
  std::vector<std::uint64_t> sharers;
  for (const GpuId& id : all)
    sharers.push_back(static_cast<std::uint64_t>(std::ranges::count(all, id)));
  return sharers;
}

namespace {

constexpr const char* kWhat = "while GPUs shared memory";

struct Transport {
  void (*require_room)(World&, std::size_t bytes, std::size_t held);
  std::unique_ptr<DeviceHeap> (*make)(World&, std::size_t bytes);
};
// In the order of the enumeration. A rank's own part takes as much of its GPU as a shared one.
constexpr std::array kTransports{
    Transport{require_vmm_room, make_vmm_heap}, Transport{require_nvshmem_room, make_nvshmem_heap},
    Transport{require_host_room, make_host_heap}, Transport{require_vmm_room, make_own_heap}};
const Transport& transport_of(DeviceTransport transport) {
  return kTransports[static_cast<std::size_t>(transport)];
}

}  // namespace

std::unique_ptr<DeviceHeap> DeviceHeap::create(World& world, std::size_t bytes,
                                               DeviceTransport transport) {
  return together(world, kWhat, [&] {
    transport_of(transport).require_room(world, bytes, 0);
    return transport_of(transport).make(world, bytes);
  });
}

void DeviceHeap::replace(World& world, std::unique_ptr<DeviceHeap>& heap, std::size_t bytes,
                         DeviceTransport transport) {
  together(world, kWhat, [&] {
    if (heap) transport_of(transport).require_room(world, bytes, heap->bytes());
    replace_memory(world, heap, bytes,
                   [&](std::size_t size) { return create(world, size, transport); });
  });
}

}  // namespace plait
