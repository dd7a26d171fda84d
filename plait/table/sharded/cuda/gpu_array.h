// An array that kernels of each rank read by plain addresses: the structure of a graph, or values
// of its edges (WholeGraph, section 3.2, which shares the structure out over GPUs as the features).
// This header needs no header of CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "plait/world/world.h"

namespace plait {

// An array that does not change.
class GpuArray {
 public:
  // Returns a copy on the current GPU. Waits for it. Throws DoesNotFitError.
  static std::unique_ptr<GpuArray> replicated(std::span<const std::byte> content);
  // Collective. Each rank copies one part of the content, which is the same on all, to its current
  // GPU, and maps all parts at consecutive addresses: readers need no translation of indices. Parts
  // are whole pages of 2 MiB, and of equal size. Throws DoesNotFitError on all ranks before
  // anything is allocated; UsageError for ranks on several hosts.
  static std::unique_ptr<GpuArray> sharded(World& world, std::span<const std::byte> content);
  // All ranks destroy sharded arrays in the same order. Waits for the GPU.
  virtual ~GpuArray() = default;

  // Returns the array. It may be read as elements of any type whose size divides a page.
  const std::byte* data() const { return data_; }

 protected:
  const std::byte* data_ = nullptr;
};

// Returns the bytes that a rank's GPU holds of a sharded array.
std::size_t sharded_bytes(std::size_t bytes, int ranks);

}  // namespace plait
