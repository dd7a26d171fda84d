#include "plait/world/world_channel.h"

#include <utility>

namespace plait {
namespace {

class WorldChannel : public Channel, public WatchedWork {
 public:
  WorldChannel(World& world, std::unique_ptr<Collectives> group)
      : world_(world), collectives_(std::move(group)) {
    world_.watch(*this);
  }
  ~WorldChannel() override { world_.unwatch(*this); }

  void end_waits() override { collectives_->end_waits(); }
  // It waits for ranks alone, which the watch does not lose for that.
  Progress progress() override { return {}; }

  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> received) override {
    require_parts(send, received, world_.rank(), world_.size());
    try {
      collectives_->all_to_all(send, received);
    } catch (const Error& error) {
      throw BrokenChannelError(error.what());
    }
  }

 private:
  World& world_;
  const std::unique_ptr<Collectives> collectives_;
};

}  // namespace

std::unique_ptr<Channel> make_channel(World& world, std::unique_ptr<Collectives> group) {
  return std::make_unique<WorldChannel>(world, std::move(group));
}

}  // namespace plait
