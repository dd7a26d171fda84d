#include "plait/world/watched_wait.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "plait/base/error.h"

namespace plait {
namespace {

class OneWait final : public WatchedWork {
 public:
  explicit OneWait(World& world) : world_(world) { world_.watch(*this); }
  ~OneWait() { world_.unwatch(*this); }
  OneWait(const OneWait&) = delete;
  OneWait& operator=(const OneWait&) = delete;

  void end_waits() override { ended_ = true; }
  Progress progress() override { return {.under_way = true, .moved = 0, .of_host = true}; }
  bool ended() const { return ended_; }

 private:
  World& world_;
  std::atomic<bool> ended_ = false;
};

}  // namespace

void watched_wait(World& world, const std::function<bool()>& done) {
  using namespace std::chrono_literals;
  if (done()) return;
  const OneWait wait(world);
  for (auto pause = 10us; !done(); pause = std::min(2 * pause, decltype(pause)(1ms))) {
    if (wait.ended()) {
      world.check_alive();
      throw Error("this rank has left the others");
    }
    std::this_thread::sleep_for(pause);
  }
}

void watch_while(World& world, const std::function<void()>& wait) {
  const OneWait watched(world);
  wait();
}

}  // namespace plait
