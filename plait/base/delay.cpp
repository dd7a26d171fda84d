#include "plait/base/delay.h"

#include <mutex>
#include <random>
#include <thread>

namespace plait {
namespace {

struct Delays {
  std::mutex mutex;
  std::mt19937_64 random;
  std::chrono::microseconds longest{0};
};

Delays& delays() {
  static Delays instance;
  return instance;
}

}  // namespace

void switch_delays(std::uint64_t seed, std::chrono::microseconds longest) {
  Delays& d = delays();
  const std::lock_guard lock(d.mutex);
  d.random.seed(seed);
  d.longest = longest;
  detail::delays_on = longest.count() > 0;
}

std::chrono::microseconds next_delay() {
  if (!delays_on()) return {};
  Delays& d = delays();
  const std::lock_guard lock(d.mutex);
  if (d.random() % 4 != 0) return {};
  return std::chrono::microseconds(1 + d.random() % static_cast<std::uint64_t>(d.longest.count()));
}

void delay_now() { std::this_thread::sleep_for(next_delay()); }

}  // namespace plait
