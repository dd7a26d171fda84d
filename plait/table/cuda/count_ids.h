// Counts on a GPU how often ids come up: the weights that choose hot rows after a first epoch
// (table/hot_rows.h). This header needs no header of CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace plait {

// Takes 8 bytes per row in the memory of the current GPU.
class GpuIdCounts {
 public:
  // Waits for the GPU. Throws DoesNotFitError.
  explicit GpuIdCounts(std::uint64_t rows);
  ~GpuIdCounts();

  // Enqueues the count of ids, which are below `rows` and in memory that the GPU reaches, on the
  // cudaStream_t. Streams may do so at the same time.
  void add(const std::uint64_t* ids, std::uint64_t count, void* stream);
  // Returns the numbers by id. Waits for the GPU.
  std::vector<std::uint64_t> to_host() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace plait
