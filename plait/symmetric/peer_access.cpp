#include "plait/symmetric/peer_access.h"

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"

namespace plait {

std::string unreached_peer(World& world, const std::function<bool(int peer)>& reaches) {
  const std::vector<int> unreached = gather_found(world, [&] {
    int peer = 0;
    while (peer < world.size() && (peer == world.rank() || reaches(peer))) ++peer;
    return peer;
  });
  for (int rank = 0; rank < world.size(); ++rank)
    if (const int other = unreached[static_cast<std::size_t>(rank)]; other < world.size())
      return fmt::format("the GPU of rank {} cannot reach the memory of rank {}'s",
                         world.number_of(rank), world.number_of(other));
  return {};
}

}  // namespace plait
