// Gathers and adds rows on a GPU (store/gather_rows.h). This header needs no header of CUDA.
//
// Bases of ranks, ids, results, counts and translation arrays are in memory that the current GPU
// reaches: its own, other GPUs' (over NVLink) or mapped host memory. Rows with a scale stand at
// multiples of 4 bytes.
#pragma once

#include <memory>

#include "plait/store/gather_rows.h"

namespace plait {

// Enqueues the copy on the cudaStream_t.
void gpu_gather_rows(const GatherRows& args, void* stream);
// Enqueues the sums on the cudaStream_t, by atomic additions, which other GPUs may make in the same
// rows at the same time. So sums of three and more numbers may differ in their last bits.
void gpu_add_rows(const AddRows& args, void* stream);

// Adds rows in the order of i, with the bits of add_rows(). Nothing else may write the rows of `to`
// at the same time.
class GpuOrderedSums {
 public:
  GpuOrderedSums();
  ~GpuOrderedSums();

  // Enqueues the sums on the cudaStream_t. Memory for sorting stays with this object, which serves
  // one stream at a time. Throws DoesNotFitError, also for 2^31 ids or more.
  void add(const AddRows& args, void* stream);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace plait
