// The gathers of all rows (gather.cuh).
#include "plait/table/cuda/gather.cuh"
#include "plait/table/cuda/gather_rows.h"

namespace plait {

void gpu_gather_rows(const GatherRows& args, void* stream) {
  enqueue_gather(args, EveryRow{}, static_cast<cudaStream_t>(stream));
}

void gpu_gather_rows(const GatherRows& args, const GatherDropout& dropout, void* stream) {
  if (args.count == 0 || args.width == 0) return;
  enqueue_floats(args, DroppedRows(dropout), static_cast<cudaStream_t>(stream));
}

}  // namespace plait
