#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/setting.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/peer_access.h"

namespace plait {

std::string unreached_peer(World& world) {
  const auto ids = gather_found(world, current_gpu_id);
  return unreached_peer(world,
                        [&](int peer) { return gpu_reaches(ids[static_cast<std::size_t>(peer)]); });
}

void require_peer_access(World& world) {
  const std::string unreached = unreached_peer(world);
  require_on_all<UsageError>(unreached.empty(),
                             "{}, neither over NVLink nor PCIe; use {}, which needs no such "
                             "access, or GPUs that reach each other (plait doctor tells which do)",
                             unreached, setting("strategy", "bulk"));
}

}  // namespace plait
