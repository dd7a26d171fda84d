// Signals: how streams of different GPUs wait for each other, without the host.
//
// Each rank keeps a flag for each signal that another rank may raise, in its own memory, so that it
// waits there and only the raising crosses the link. A flag holds the number of the last step in
// which it was raised; steps count up from 1 and are counted on the GPU, so that recorded work can
// be replayed (CUDA graphs).
//
// Memory ordering: a signal is raised by a release store at system scope, after all that the stream
// did before (its kernels' and copies' writes to any GPU); a wait is an acquire load at system
// scope, and what follows on the stream sees those writes.
//
// A wait ends after `limit` at the latest. It then notes its failure, no later wait waits, and
// check() throws.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "plait/symmetric/device_heap_cuda.h"

namespace plait {

// In the GPU's memory.
struct SignalState {
  std::uint32_t step;
  std::int32_t failed;        // 1 + the rank that was waited for in vain, or 0
  unsigned long long waited;  // ns
};

// Bytes for a peer, and the signal that they have arrived. All of it multiples of 4 bytes; faster
// where of 16.
struct Push {
  int peer;
  const void* from;  // on this GPU
  void* to;          // on the peer's
  std::uint64_t bytes;
  int number;
};

// A signal that `rank` raises to this one.
struct Signal {
  int rank;
  int number;  // below DeviceSignals::kSignals
};

class DeviceSignals {
 public:
  static constexpr int kSignals = 64;  // from each rank
  // Every step ends with it: the rank reads what it was given no more, and the next step may write
  // there.
  static constexpr int kDone = kSignals - 1;

  // Flags stand at the beginning of every part of the heap, which outlives this.
  DeviceSignals(DeviceHeap& heap, int rank, int ranks,
                std::chrono::nanoseconds limit = std::chrono::minutes(1));
  static std::size_t bytes(int ranks) {
    return static_cast<std::size_t>(ranks) * kSignals * sizeof(std::uint32_t);
  }

  // Raises signal `number` at `peer`, or at all other ranks, for this step. Raised everywhere,
  // kDone ends the step: nothing on any other stream may still belong to it.
  void raise(int peer, int number, cudaStream_t stream);
  void raise_everywhere(int number, cudaStream_t stream);
  // Until all have been raised in this step or later; or in the step `back` before.
  void wait(std::span<const Signal> signals, cudaStream_t stream, std::uint32_t back = 0);

  // Waits until all others have done the step before, writes to them in the order given, and raises
  // the signals: one kernel for each 32 of them, for what is small, where copies and signals would
  // take longer to begin than to run.
  void push(std::span<const Push> pushes, cudaStream_t stream);

  // Seconds that streams have stood in waits for the step under way, so far. Throws Error naming
  // the rank if a wait has run out. Waits for the GPU.
  double waited() const;

 private:
  void push_some(std::span<const Push> pushes, cudaStream_t stream);
  template <class Piece>
  void push_pieces(std::span<const Push> pushes, cudaStream_t stream);
  std::uint32_t* flag(int at, int from, int number) const;

  DeviceHeap& heap_;
  int rank_, ranks_;
  std::uint64_t limit_;  // ns
  DeviceArray<SignalState> state_;
  DeviceArray<unsigned> ended_;
};

}  // namespace plait
