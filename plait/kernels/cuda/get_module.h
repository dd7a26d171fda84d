// The module of the kernels that read by NVSHMEM's device functions, as data of this program
// (nvshmem/CMakeLists.txt). A build without NVSHMEM's device library has none.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace plait {

// Returns the module, a fat binary of CUDA; empty if there is none.
std::span<const std::byte> get_module_image();

// Returns the version of NVSHMEM that is linked into it, as "3.4.5"; empty if there is none.
std::string_view nvshmem_of_build();

// Throws a UsageError that says how to get it if there is none.
void require_get_module();

}  // namespace plait
