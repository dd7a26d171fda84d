// The ranks of one host as a world of their own (World::host_world()).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plait/world/watched_world.h"

namespace plait {

class HostWorld : public WatchedWorld {
 public:
  // Joins a group of this host's ranks, which no group of this name has had before. `check`: as in
  // join_host_group().
  using JoinGroup = std::function<std::unique_ptr<Collectives>(const std::string& name,
                                                               std::function<void()> check)>;

  // Collective among the ranks of the host. `whole`, the world of all ranks, and its watch outlive
  // this.
  HostWorld(World& whole, Liveness& liveness, JoinGroup join);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_of_host_.size()); }
  int number_of(int rank) const override {
    return whole_.ranks_of_host()[static_cast<std::size_t>(rank)];
  }
  std::chrono::milliseconds timeout() const override { return whole_.timeout(); }
  std::unique_ptr<Channel> open_channel() override;
  const std::vector<int>& ranks_of_host() const override { return ranks_of_host_; }
  void store_set(const std::string& key, const std::string& value) override {
    whole_.store_set(name_ + '/' + key, value);
  }
  std::string store_get(const std::string& key) override {
    return whole_.store_get(name_ + '/' + key);
  }
  void check_alive() override { whole_.check_alive(); }
  [[noreturn]] void explain(const std::string& error) override { whole_.explain(error); }
  void declare_failed(const std::string& reason) override { whole_.declare_failed(reason); }
  void watch(WatchedWork& work) override { whole_.watch(work); }
  void unwatch(WatchedWork& work) override { whole_.unwatch(work); }
  bool is_watched() const override { return true; }
  std::uint64_t bytes_sent() const override { return collectives_->bytes_sent(); }

 private:
  void begin_kind(std::size_t kind) override;
  Collectives& collectives() override { return *collectives_; }

  World& whole_;
  Liveness& liveness_;
  const JoinGroup join_;
  int rank_ = 0;
  std::vector<int> ranks_of_host_;  // 0, 1, ...
  const std::string name_;          // that no other host has
  int channels_ = 0;                // that were opened
  const std::unique_ptr<Collectives> collectives_;
};

}  // namespace plait
