// The world of one: every collective is the identity, and there is no network.
#include <cstring>
#include <map>

#include "plait/base/error.h"
#include "plait/world/collectives.h"
#include "plait/world/world.h"

namespace plait {
namespace {

void copy_own_part(std::span<const std::span<const std::byte>> send,
                   std::span<const std::span<std::byte>> received) {
  require_parts(send, received, 0, 1);
  const auto from = send[0];
  if (!from.empty()) std::memmove(received[0].data(), from.data(), from.size());
}

class OwnChannel : public Channel {
 public:
  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> received) override {
    copy_own_part(send, received);
  }
};

class Alone : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::chrono::milliseconds timeout() const override { return WorldConfig{}.timeout; }

  void barrier() override {}
  void all_reduce(const ReducedValues&, Reduction) override {}
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return {{mine.begin(), mine.end()}};
  }
  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> received) override {
    copy_own_part(send, received);
  }
  void broadcast(std::span<std::byte>, int) override {}
  std::unique_ptr<Channel> open_channel() override { return std::make_unique<OwnChannel>(); }

  const std::vector<int>& ranks_of_host() const override { return ranks_; }
  void store_set(const std::string& key, const std::string& value) override { keys_[key] = value; }
  std::string store_get(const std::string& key) override {
    const auto found = keys_.find(key);
    require(found != keys_.end(), "no rank has set '{}' in the store", key);
    return found->second;
  }

  void check_alive() override {}
  std::uint64_t bytes_sent() const override { return 0; }

 private:
  std::map<std::string, std::string> keys_;
  const std::vector<int> ranks_{0};
};

}  // namespace

std::unique_ptr<World> World::alone() { return std::make_unique<Alone>(); }

}  // namespace plait
