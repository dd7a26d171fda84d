// Sums over hosts. One rank of each host takes part: for arrays that ranks of a host have summed
// among themselves by faster means than the network.
#pragma once

#include <span>
#include <vector>

#include "plait/world/world.h"

namespace plait {

class HostSums {
 public:
  // Collective among all ranks of the world, which outlives this.
  explicit HostSums(World& world);

  // Tells whether this rank takes part for its host: the first of its ranks.
  bool takes_part() const { return host_ >= 0; }
  // Collective. Replaces values by their element-wise sums over hosts, added in the order of hosts:
  // the same bits on every rank that takes part. These give the same number of values. Others give
  // nothing, and do not wait. Each host sends its numbers about twice, however many hosts there
  // are.
  void sum(std::span<float> values);

 private:
  // Returns the values that a host adds up.
  std::span<float> share(std::span<float> values, std::size_t host) const {
    const auto end = [&](std::size_t h) { return values.size() * h / first_.size(); };
    return values.subspan(end(host), end(host + 1) - end(host));
  }

  World& world_;
  std::vector<int> first_;       // the first rank of each host, ascending
  int host_ = -1;                // of this rank among them, if it takes part
  std::vector<float> received_;  // in sum(): this host's share of the values, by host
};

}  // namespace plait
