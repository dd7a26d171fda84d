#include "plait/world/world_channel.h"

#include <utility>

namespace plait {
namespace {

class WorldChannel : public Channel, public WatchedWork {
 public:
  WorldChannel(World& world, std::unique_ptr<Collectives> group)
      : world_(world),
        collectives_(std::move(group)),
        ranks_(static_cast<std::size_t>(world.size())) {
    world_.watch(*this);
  }
  ~WorldChannel() override { world_.unwatch(*this); }

  void end_waits() override { collectives_->end_waits(); }
  // It waits for ranks alone, which the watch does not lose for that.
  Progress progress() override { return {}; }

  std::vector<std::vector<std::uint64_t>> all_to_all(
      std::span<const std::vector<std::uint64_t>> send) override {
    require<UsageError>(send.size() == ranks_, "{} parts were given for {} ranks", send.size(),
                        ranks_);
    std::vector<std::uint64_t> sizes, found(ranks_);
    for (const auto& part : send) sizes.push_back(part.size());
    exchange([&](std::size_t r) { return std::span<const std::uint64_t>(&sizes[r], 1); },
             [&](std::size_t r) { return std::span(&found[r], 1); });
    std::vector<std::vector<std::uint64_t>> received(ranks_);
    for (std::size_t r = 0; r < ranks_; ++r) received[r].resize(found[r]);
    exchange([&](std::size_t r) { return std::span(send[r]); },
             [&](std::size_t r) { return std::span(received[r]); });
    return received;
  }

 private:
  // `from` and `to` return the numbers of a rank.
  template <class From, class To>
  void exchange(From from, To to) {
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
    for (std::size_t r = 0; r < ranks_; ++r) {
      send.push_back(std::as_bytes(from(r)));
      receive.push_back(std::as_writable_bytes(to(r)));
    }
    try {
      collectives_->all_to_all(send, receive);
    } catch (const Error& error) {
      throw BrokenChannelError(error.what());
    }
  }

  World& world_;
  const std::unique_ptr<Collectives> collectives_;
  const std::size_t ranks_;
};

}  // namespace

std::unique_ptr<Channel> make_channel(World& world, std::unique_ptr<Collectives> group) {
  return std::make_unique<WorldChannel>(world, std::move(group));
}

}  // namespace plait
