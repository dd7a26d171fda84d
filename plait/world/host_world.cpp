#include "plait/world/host_world.h"

#include <algorithm>
#include <numeric>

#include "plait/base/error.h"
#include "plait/world/phase.h"
#include "plait/world/together.h"
#include "plait/world/world_channel.h"

namespace plait {

HostWorld::HostWorld(World& whole, Liveness& liveness, JoinGroup join)
    : whole_(whole),
      liveness_(liveness),
      join_(std::move(join)),
      ranks_of_host_(whole.ranks_of_host().size()),
      name_(fmt::format("host{}", whole.ranks_of_host().front())),
      collectives_(join_(name_, [this] { whole_.check_alive(); })) {
  const std::vector<int>& all = whole.ranks_of_host();
  rank_ = static_cast<int>(std::ranges::find(all, whole.rank()) - all.begin());
  std::iota(ranks_of_host_.begin(), ranks_of_host_.end(), 0);
}

std::unique_ptr<Channel> HostWorld::open_channel() {
  meet_for_group();
  const Phase phase("opening a channel");
  return together(*this, "while opening a channel", [&] {
    return make_channel(*this, join_(fmt::format("{}/channel{}", name_, ++channels_), {}));
  });
}

void HostWorld::begin_kind(std::size_t kind) {
  whole_.check_alive();  // also that this process is a rank
  liveness_.begin_host_operation(kind);
}

}  // namespace plait
