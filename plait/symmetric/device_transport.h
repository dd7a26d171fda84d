// How the symmetric heap on GPUs gets its memory, and ranks each other's. No header of CUDA is
// needed here.
#pragma once

#include <string_view>

namespace plait {

enum class DeviceTransport {
  vmm,      // "cuda": CUDA's virtual memory management; all ranks on one host
  nvshmem,  // "nvshmem": NVSHMEM's heap, found at run time (nvshmem.h); a GPU a rank
};

// Throws UsageError that lists them.
DeviceTransport parse_device_transport(std::string_view name);
std::string_view to_string(DeviceTransport transport);

}  // namespace plait
