// Collectives of a world by its group, with the watch over ranks: the common part of the world of
// all ranks (world.cpp) and of that of a host's ranks (host_world.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "plait/world/collectives.h"
#include "plait/world/liveness.h"
#include "plait/world/world.h"

namespace plait {

class WatchedWorld : public World {
 public:
  // Operations that cannot meet one another, and the watch's names for them.
  enum Kind : std::size_t { kBarrier, kReduction, kExchange, kBroadcast, kElsewhere };
  // Returns the watch's names for them, in their order.
  static const std::vector<std::string>& kind_names();

  void barrier() override;
  void all_reduce(const ReducedValues& values, Reduction how) override;
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override;
  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> received) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  void begin_operation(std::uint64_t place) override {
    begin_kind(kElsewhere + place % (Liveness::kKinds - kElsewhere));
  }

 protected:
  // Throws UsageError in a process that is no rank; tells the watch that an operation begins.
  virtual void begin_kind(std::size_t kind) = 0;
  virtual Collectives& collectives() = 0;
  // Collective. Returns when all ranks have come that are to join another group, so that who does
  // not come is found out. Throws Error on all ranks if one has too few descriptors for the group.
  void meet_for_group();

 private:
  // Runs an operation of all ranks of the world. If a rank is lost, a failure is reported as that
  // loss.
  template <class Operation>
  void collective(Kind kind, Operation&& operation);
};

}  // namespace plait
