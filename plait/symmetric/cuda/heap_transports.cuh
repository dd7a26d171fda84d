// The transports of the symmetric heap on GPUs. Internal to this room.
#pragma once

#include "plait/symmetric/cuda/heap.cuh"

namespace plait {

// Collective. Throw DoesNotFitError if a GPU has too little memory for `bytes` (`held`: bytes that
// every rank will have freed before), UsageError if ranks are not placed for the transport.
void require_vmm_room(World& world, std::size_t bytes, std::size_t held);
void require_nvshmem_room(World& world, std::size_t bytes, std::size_t held);
void require_host_room(World& world, std::size_t bytes, std::size_t held);
// As DeviceHeap::create(), once there is room.
std::unique_ptr<DeviceHeap> make_vmm_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_nvshmem_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_host_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_own_heap(World& world, std::size_t bytes);

}  // namespace plait
