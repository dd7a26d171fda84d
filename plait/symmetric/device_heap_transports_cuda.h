// The transports of the symmetric heap on GPUs. Internal to this room.
#pragma once

#include "plait/symmetric/device_heap_cuda.h"

namespace plait {

// Collective. Throw DoesNotFitError where a GPU has too little memory for `bytes`, `held` that
// every rank will have freed among it, UsageError where ranks are not placed for the transport.
void require_vmm_room(World& world, std::size_t bytes, std::size_t held);
void require_nvshmem_room(World& world, std::size_t bytes, std::size_t held);
void require_host_room(World& world, std::size_t bytes, std::size_t held);
// As DeviceHeap::create(), where there is room.
std::unique_ptr<DeviceHeap> make_vmm_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_nvshmem_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_host_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_own_heap(World& world, std::size_t bytes);

}  // namespace plait
