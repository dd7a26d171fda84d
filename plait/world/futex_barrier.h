// A barrier between processes that share memory.
//
// The ranks of a round count themselves in `arrived`; the last one sets it back and moves
// `generation` on, for which the others wait. They look at it for a moment, then sleep on it in the
// kernel (futex), so that ranks that outnumber the cores do not take them from ranks that still
// work.
//
// Memory ordering: every arrival is a read-modify-write of `arrived` with acquire and release, so
// the last arrival comes after all writes of all ranks; its release of `generation`, which the
// others acquire, passes them on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace plait {

// Lies in shared memory; zeroes are its initial state. It takes two cache lines, so that arrivals
// do not disturb ranks that wait.
struct BarrierState {
  alignas(64) std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> generation;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
};

// This process's access to a barrier. One thread of a process uses it.
class FutexBarrier {
 public:
  // `state` is shared by `ranks` processes and outlives this object.
  FutexBarrier(BarrierState& state, int ranks);

  // Returns when all ranks have called it. Calls `check` about every 20 ms of waiting; if that
  // throws, the barrier is of no use any more.
  void wait(const std::function<void()>& check);

 private:
  BarrierState& state_;
  const std::uint32_t ranks_;
  const int spins_;
};

}  // namespace plait
