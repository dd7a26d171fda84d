// Device code of signals (cuda/signals.cuh). Internal to this room.
#pragma once

#include <cuda/atomic>

#include "plait/symmetric/cuda/signals.cuh"

namespace plait {

// The state of one rank's signals, in memory of its GPU.
struct SignalState {
  std::uint32_t step;  // the number of the step under way
  int rank, ranks;
  std::uint32_t marks, replays;
  unsigned long long waited;  // ns in waits of steps under way, in all
  SignalWords* words;
  std::uint32_t* failed_at[kMostGpus];  // by rank: its mark of a failed wait
};

using SystemFlag = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

// Time between looks whether to go on waiting. Looking in each turn would delay seeing the flag.
constexpr unsigned long long kLookEvery = 100'000;  // ns

// Returns the GPU's global clock, in ns.
__device__ inline unsigned long long nanoseconds() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// Writes a word of SignalWords, in the host's memory.
template <class Word>
__device__ void tell_host(Word& word, Word value) {
  *const_cast<volatile Word*>(&word) = value;
}

// Returns the mark of a failed wait of this rank, or of another rank that may since have
// overwritten rows which this one reads; 0 if there is none.
__device__ inline Mark failed_mark(const SignalState* state) {
  return SystemFlag(*state->failed_at[state->rank]).load(cuda::memory_order_acquire);
}
__device__ inline bool has_failed(const SignalState* state) { return failed_mark(state) != 0; }

// Marks a failed wait on all ranks. The marks come before everything that this GPU does after the
// wait.
__device__ inline void fail(SignalState* state, Mark mark) {
  for (int rank = 0; rank < state->ranks; ++rank)
    SystemFlag(*state->failed_at[rank]).store(mark, cuda::memory_order_release);
  __threadfence_system();
  tell_host(state->words->failed, mark);
}

// Waits until the flag holds `step` or a later one, and returns true; returns false when waits have
// failed.
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
    Mark mark = failed_mark(state);
    if (mark == 0) mark = *const_cast<volatile Mark*>(&state->words->ended);
    if (mark != 0) {
      fail(state, mark);
      return false;
    }
  }
  return true;
}

}  // namespace plait
