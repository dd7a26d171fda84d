// Gathers and adds rows on a GPU (table/gather_rows.h). This header needs no header of CUDA.
//
// Bases of ranks, ids, results, counts and translation arrays are in memory that the current GPU
// reaches: its own, other GPUs' (over NVLink) or mapped host memory. Rows with a scale stand at
// multiples of 4 bytes.
#pragma once

#include <memory>

#include "plait/kernels/dropout.h"
#include "plait/table/gather_rows.h"

namespace plait {

// Dropout of rows while they are gathered, so that they are not read and written once more: row i
// of the results is that of the vertex numbers[i]. Results are drop_rows() of gathered rows.
struct GatherDropout {
  Dropout dropout;
  std::uint32_t epoch = 0, layer = 0;
  const std::uint64_t* numbers = nullptr;
};

// Enqueues the copy on the cudaStream_t; the second one of rows that are not raw.
void gpu_gather_rows(const GatherRows& args, void* stream);
void gpu_gather_rows(const GatherRows& args, const GatherDropout& dropout, void* stream);
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
