// What a kernel does with signals (signals_cuda.h). Internal to this room.
#pragma once

#include <cuda/atomic>

#include "plait/symmetric/signals_cuda.h"

namespace plait {

struct SignalState {
  std::uint32_t step;  // the one under way
  int rank, ranks;
  std::uint32_t marks;
  unsigned long long waited;  // ns
  SignalWords* words;
  std::uint32_t* failed_at[DeviceSignals::kMostRanks];  // by rank: its mark of a failed wait
};

using SystemFlag = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

// How often a wait looks whether to go on: not in each turn, which would take longer to see the
// flag.
constexpr unsigned long long kLookEvery = 100'000;  // ns

__device__ inline unsigned long long nanoseconds() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ inline void tell_host(std::uint32_t& word, std::uint32_t value) {
  *const_cast<volatile std::uint32_t*>(&word) = value;
}

// Whether a wait of this rank has failed, or one of another rank that may since have overwritten
// what this one reads.
__device__ inline bool has_failed(const SignalState* state) {
  return SystemFlag(*state->failed_at[state->rank]).load(cuda::memory_order_acquire) != 0;
}

// Marks come before all that this GPU does after the wait.
__device__ inline void fail(SignalState* state) {
  for (int rank = 0; rank < state->ranks; ++rank)
    SystemFlag(*state->failed_at[rank]).store(1, cuda::memory_order_release);
  __threadfence_system();
  tell_host(state->words->failed, 1);
}

// Returns when the flag holds `step` or a later one: true; or when waits have failed: false.
__device__ inline bool await_flag(std::uint32_t* at, std::uint32_t step, SignalState* state) {
  SystemFlag flag(*at);
  unsigned long long looked = nanoseconds();
  // Steps may pass 2^32: their difference counts.
  while (static_cast<std::int32_t>(flag.load(cuda::memory_order_acquire) - step) < 0) {
    __nanosleep(20);
    const unsigned long long now = nanoseconds();
    if (now - looked < kLookEvery) continue;
    looked = now;
    tell_host(state->words->waiting, static_cast<std::uint32_t>(now / kLookEvery));
    if (has_failed(state) || *const_cast<volatile std::uint32_t*>(&state->words->ended) != 0) {
      fail(state);
      return false;
    }
  }
  return true;
}

}  // namespace plait
