// The transports of the symmetric heap on GPUs, and what they share. Internal to this room.
#pragma once

#include "plait/symmetric/device_heap_cuda.h"

namespace plait {

// As DeviceHeap::create().
std::unique_ptr<DeviceHeap> make_vmm_heap(World& world, std::size_t bytes);
std::unique_ptr<DeviceHeap> make_nvshmem_heap(World& world, std::size_t bytes);

// Collective. By rank: how many ranks are on the GPU that is its current one.
std::vector<std::uint64_t> gpu_sharers(World& world);

// Bytes that are free on the current GPU.
std::uint64_t free_on_gpu();

}  // namespace plait
