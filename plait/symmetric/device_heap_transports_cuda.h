// The transports of the symmetric heap on GPUs. Internal to this room.
#pragma once

#include "plait/symmetric/device_heap_cuda.h"

namespace plait {

// As DeviceHeap::create().
std::unique_ptr<DeviceHeap> make_vmm_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_nvshmem_heap(World& world, std::size_t bytes);

}  // namespace plait
