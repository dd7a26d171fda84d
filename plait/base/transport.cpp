#include "plait/base/transport.h"

#include "plait/base/names.h"

namespace plait {
namespace {

constexpr Names<DeviceTransport, 2> kTransports{"transport", {"cuda", "nvshmem"}};

}  // namespace

DeviceTransport parse_device_transport(std::string_view name) { return kTransports.parse(name); }
std::string_view to_string(DeviceTransport transport) { return kTransports.of(transport); }

}  // namespace plait
