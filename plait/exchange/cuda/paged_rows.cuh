// The memory of strategy `paged`: own rows in memory that all ranks of the host read, and a rank's
// slots in CUDA's managed memory. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/base/cuda/cuda.cuh"
#include "plait/symmetric/rows.h"
#include "plait/world/world.h"

namespace plait {

// Own rows and slots of one rank. It owns both.
class PagedRows {
 public:
  // Throws UsageError unless the GPU brings pages of managed memory on demand. The world outlives
  // it.
  explicit PagedRows(World& world);

  // Collective. Makes room for `own` floats of own rows and `slots` floats of slots; the old
  // content is lost. Throws DoesNotFitError with the figures, before anything is allocated, if the
  // slots need more than the GPU has free, so that no page is ever driven out. There is then room
  // as before, or lost().
  void reserve(std::uint64_t own, std::uint64_t slots);
  bool lost() const { return shared_.lost() || !slots_; }

  // Own rows of all ranks of the host.
  SymmetricRows& shared() { return shared_; }
  // The slots, which the GPU reads and writes, and the host while the GPU is idle.
  float* slots() { return slots_->data(); }

 private:
  class ManagedMemory {
   public:
    // Throws DoesNotFitError.
    explicit ManagedMemory(std::size_t bytes);
    ~ManagedMemory() { cudaFree(data_); }
    ManagedMemory(const ManagedMemory&) = delete;
    ManagedMemory& operator=(const ManagedMemory&) = delete;
    std::size_t bytes() const { return bytes_; }
    float* data() { return data_; }

   private:
    float* data_ = nullptr;
    std::size_t bytes_;
  };

  World& world_;
  SymmetricRows shared_;
  std::unique_ptr<ManagedMemory> slots_;
};

}  // namespace plait
