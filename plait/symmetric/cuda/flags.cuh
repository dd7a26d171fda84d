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
  std::uint32_t announcements, replays_given;  // as in StepCounts
  unsigned long long waited;                   // ns in waits of steps under way, in all
  SignalWords* words;
  Mark* failed_at[kMostGpus];  // by rank: its mark of a failed wait
  // By rank: its word of this rank's waits; and this rank's words of that rank's waits and of the
  // last step that it has ended. Each is a flag_word().
  std::uint64_t* waits_at[kMostGpus];
  std::uint64_t *waits_of[kMostGpus], *done_by[kMostGpus];
};

using SystemFlag = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
using SystemMark = cuda::atomic_ref<Mark, cuda::thread_scope_system>;

// A flag's word: the kind of the step in which it was raised above the step's number.
__device__ inline std::uint64_t flag_word(std::uint32_t step, StepKind kind) {
  return std::uint64_t{kind} << 32 | step;
}

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
  return SystemMark(*state->failed_at[state->rank]).load(cuda::memory_order_acquire);
}
__device__ inline bool has_failed(const SignalState* state) { return failed_mark(state) != 0; }

// Marks a failed wait on all ranks. The marks come before everything that this GPU does after the
// wait.
__device__ inline void fail(SignalState* state, Mark mark) {
  for (int rank = 0; rank < state->ranks; ++rank)
    SystemMark(*state->failed_at[rank]).store(mark, cuda::memory_order_release);
  __threadfence_system();
  tell_host(state->words->failed, mark);
}

// Tells the other ranks that this one waits in a step of this kind, and returns whether one of them
// waits in, or has ended, the same step as one of another kind. That one may never raise the flags
// that are awaited here: a rank raises those alone that its own kind of step has.
__device__ inline bool is_elsewhere(std::uint32_t step, StepKind kind, const SignalState* state) {
  const std::uint64_t mine = flag_word(step, kind);
  bool differs = false;
  for (int rank = 0; rank < state->ranks; ++rank) {
    if (rank == state->rank) continue;
    SystemFlag(*state->waits_at[rank]).store(mine, cuda::memory_order_relaxed);
    for (std::uint64_t* const of : {state->waits_of[rank], state->done_by[rank]}) {
      const std::uint64_t word = SystemFlag(*of).load(cuda::memory_order_relaxed);
      const auto theirs = static_cast<StepKind>(word >> 32);
      differs |= static_cast<std::uint32_t>(word) == step && theirs != kind && theirs != kAnyStep;
    }
  }
  return differs;
}

// Waits until the flag holds `step` or a later one, and returns true; returns false when waits have
// failed. `kind`: of this step, if the flag is raised in it; another kind in the flag makes the
// wait fail. kAnyStep: the flag may be of any.
__device__ inline bool await_flag(std::uint64_t* at, std::uint32_t step, StepKind kind,
                                  SignalState* state) {
  SystemFlag flag(*at);
  unsigned long long looked = nanoseconds();
  for (;;) {
    const std::uint64_t word = flag.load(cuda::memory_order_acquire);
    const auto raised = static_cast<std::uint32_t>(word);
    // Steps may pass 2^32: their difference counts.
    if (static_cast<std::int32_t>(raised - step) >= 0) {
      if (kind == kAnyStep || raised != step || word == flag_word(step, kind)) return true;
      fail(state, kDifferentSteps);
      return false;
    }
    __nanosleep(20);
    const unsigned long long now = nanoseconds();
    if (now - looked < kLookEvery) continue;
    looked = now;
    tell_host(state->words->waiting, static_cast<std::uint32_t>(now / kLookEvery));
    Mark mark = failed_mark(state);
    if (mark == 0) mark = *const_cast<volatile Mark*>(&state->words->ended);
    if (mark == 0 && kind != kAnyStep && is_elsewhere(step, kind, state)) mark = kDifferentSteps;
    if (mark != 0) {
      fail(state, mark);
      return false;
    }
  }
}

}  // namespace plait
