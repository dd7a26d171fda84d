// The kind of processor on which ranks keep rows and compute.
#pragma once

namespace plait {

enum class Device { cpu, gpu };

// Returns the device of ranks that have a GPU each, or none.
constexpr Device device_of(bool gpus) { return gpus ? Device::gpu : Device::cpu; }

}  // namespace plait
