#include "plait/symmetric/device_transport.h"

#include "plait/base/error.h"

namespace plait {

DeviceTransport parse_device_transport(std::string_view name) {
  for (const auto transport : {DeviceTransport::vmm, DeviceTransport::nvshmem})
    if (name == to_string(transport)) return transport;
  throw UsageError(fmt::format("transport '{}' is unknown; use cuda or nvshmem", name));
}

std::string_view to_string(DeviceTransport transport) {
  return transport == DeviceTransport::nvshmem ? "nvshmem" : "cuda";
}

}  // namespace plait
