// What a kernel does with signals (signals_cuda.h). Internal to this room.
#pragma once

#include <cuda/atomic>

#include "plait/symmetric/signals_cuda.h"

namespace plait {

using SystemFlag = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

__device__ inline unsigned long long nanoseconds() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// Until the flag holds `step` or a later one, a wait has failed, or `limit` ns have passed, which
// is then the failure of `rank`.
__device__ inline void await_flag(std::uint32_t* at, std::uint32_t step, int rank,
                                  SignalState* state, unsigned long long limit) {
  SystemFlag flag(*at);
  const volatile std::int32_t& failed = state->failed;
  const unsigned long long begin = nanoseconds();
  // Steps may pass 2^32: their difference counts.
  while (static_cast<std::int32_t>(flag.load(cuda::memory_order_acquire) - step) < 0 &&
         failed == 0) {
    if (nanoseconds() - begin > limit) atomicCAS(&state->failed, 0, 1 + rank);
    __nanosleep(20);
  }
}

}  // namespace plait
