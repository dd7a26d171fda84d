#include "plait/world/futex_barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <thread>

namespace plait {
namespace {

// A rank looks for about 20 microseconds: a sleep and a wake-up cost several.
constexpr int kSpins = 1000;
constexpr long kNanosecondsBetweenChecks = 20'000'000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Futexes are shared (without FUTEX_PRIVATE_FLAG): waiters are in other processes.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec limit{0, kNanosecondsBetweenChecks};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

FutexBarrier::FutexBarrier(BarrierState& state, int ranks)
    : state_(state),
      ranks_(static_cast<std::uint32_t>(ranks)),
      spins_(static_cast<unsigned>(ranks) <= std::thread::hardware_concurrency() ? kSpins : 0) {}

void FutexBarrier::wait(const std::function<void()>& check) {
  // The generation cannot move on before this rank has arrived, so a relaxed read gives this
  // round's.
  const auto round = state_.generation.load(std::memory_order_relaxed);
  if (state_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
    // This store is ordered before the next round's arrivals by the release below.
    state_.arrived.store(0, std::memory_order_relaxed);
    state_.generation.store(round + 1, std::memory_order_release);
    wake_all(state_.generation);
    return;
  }
  for (int i = 0; i < spins_; ++i) {
    if (state_.generation.load(std::memory_order_acquire) != round) return;
    relax();
  }
  while (state_.generation.load(std::memory_order_acquire) == round) {
    sleep_while(state_.generation, round);
    if (state_.generation.load(std::memory_order_acquire) != round) return;
    check();
  }
}

}  // namespace plait
