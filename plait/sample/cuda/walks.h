// Random walks on a GPU: the same vertices as RandomWalks on the CPU. This header needs no header
// of CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/walks.h"

namespace plait {

class GpuRandomWalks {
 public:
  // Copies the sums of weights, if there are any, and waits for that. `graph` is a copy of the
  // graph of `walks` and outlives this. Throws DoesNotFitError.
  GpuRandomWalks(const GpuCsr& graph, const RandomWalks& walks);
  // Does so with sums that stand in memory which the current GPU reaches, owned by others.
  GpuRandomWalks(const GpuCsr& graph, const RandomWalks& walks, const double* sums);
  ~GpuRandomWalks();

  // Enqueues on the cudaStream_t the walks of RandomWalks::walk(), for `count` starts, which it
  // does not check: `starts` and `walks`, of count x (length + 1), are in memory of the GPU. Throws
  // UsageError for settings out of range.
  void enqueue(const WalkSettings& settings, const std::uint64_t* starts, std::uint64_t count,
               std::uint64_t key, std::uint64_t* walks, void* stream) const;
  // Returns the walks of RandomWalks::walk() on the host, without checking `starts`. Throws
  // UsageError, and DoesNotFitError if the GPU or the host has too little memory.
  RawVector<std::uint64_t> walk(const WalkSettings& settings, std::span<const std::uint64_t> starts,
                                std::uint64_t key) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace plait
