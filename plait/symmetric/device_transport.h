// How the symmetric heap on GPUs gets its memory, and ranks each other's. No header of CUDA is
// needed here.
#pragma once

#include <string_view>

namespace plait {

enum class DeviceTransport {
  vmm,      // "cuda": CUDA's virtual memory management; all ranks on one host
  nvshmem,  // "nvshmem": NVSHMEM's heap, found at run time (nvshmem.h); a GPU a rank
  // Without a name on the command line, for GPUs that need not reach each other's memory:
  host,  // parts in the host's memory, which all GPUs of the host reach; for signals
  own,   // each rank reaches its own part alone
};

// Throws UsageError that lists those with a name.
DeviceTransport parse_device_transport(std::string_view name);
std::string_view to_string(DeviceTransport transport);  // of those with a name

}  // namespace plait
