// Where strategy `paged` keeps rows: own rows in memory that all ranks of the host read, and a
// rank's slots in CUDA's managed memory. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/base/cuda.h"
#include "plait/symmetric/rows.h"
#include "plait/world/world.h"

namespace plait {

class PagedRows {
 public:
  // Throws UsageError unless the GPU takes pages of managed memory when it reads them.
  explicit PagedRows(World& world);

  // Collective: room for so many floats; what was there is lost. Throws DoesNotFitError with the
  // figures, before anything is allocated, if the slots are more than the GPU has free, so that no
  // page is ever driven out; there is then room as before, or lost().
  void reserve(std::uint64_t own, std::uint64_t slots);
  bool lost() const { return shared_.lost() || !slots_; }

  SymmetricRows& shared() { return shared_; }
  // Read and written by the GPU and, while that does nothing, by the host.
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
