#include "plait/world/host_sums.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/world/gather.h"

namespace plait {

HostSums::HostSums(World& world)
    : world_(world), first_(gather_values(world, world.ranks_of_host()[0])) {
  std::ranges::sort(first_);
  first_.erase(std::unique(first_.begin(), first_.end()), first_.end());
  const auto own = std::ranges::find(first_, world.rank());
  if (own != first_.end()) host_ = static_cast<int>(own - first_.begin());
}

// Each host receives its share of the values of all, adds them up, and sends the sums to all.
void HostSums::sum(std::span<float> values) {
  require<UsageError>(takes_part() || values.empty(), "rank {} takes no part in a sum over hosts",
                      world_.rank());
  const auto ranks = static_cast<std::size_t>(world_.size());
  std::vector<std::span<const std::byte>> send(ranks);
  std::vector<std::span<std::byte>> receive(ranks);
  const std::size_t hosts = takes_part() ? first_.size() : 0;
  const auto own = takes_part() ? share(values, static_cast<std::size_t>(host_)) : values;
  received_.resize(own.size() * hosts);
  const auto part = [&](std::size_t h) {
    return std::span(received_).subspan(h * own.size(), own.size());
  };
  for (std::size_t h = 0; h < hosts; ++h) {
    const auto rank = static_cast<std::size_t>(first_[h]);
    send[rank] = std::as_bytes(share(values, h));
    receive[rank] = std::as_writable_bytes(part(h));
  }
  world_.all_to_all(send, receive);
  std::ranges::fill(own, 0.0f);
  for (std::size_t h = 0; h < hosts; ++h) {
    const std::span<const float> others = part(h);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += others[i];
  }
  for (std::size_t h = 0; h < hosts; ++h) {
    const auto rank = static_cast<std::size_t>(first_[h]);
    send[rank] = std::as_bytes(own);
    receive[rank] = std::as_writable_bytes(share(values, h));
  }
  world_.all_to_all(send, receive);
}

}  // namespace plait
