// The ways in which the symmetric heap on GPUs gets its memory, and ranks reach each other's. This
// header needs no header of CUDA.
#pragma once

#include <string_view>

namespace plait {

// A transport. Two have names on the command line; the others are for GPUs that need not reach each
// other's memory.
enum class DeviceTransport {
  vmm,      // "cuda": CUDA's virtual memory management; all ranks on one host
  nvshmem,  // "nvshmem": NVSHMEM's heap, found at run time (nvshmem.h); one GPU per rank
  host,     // parts in the host's memory, which all GPUs of the host reach; for signals
  own,      // each rank reaches only its own part
};

// Throws a UsageError that lists the transports with a name.
DeviceTransport parse_device_transport(std::string_view name);
// Returns the name of a transport that has one.
std::string_view to_string(DeviceTransport transport);

}  // namespace plait
