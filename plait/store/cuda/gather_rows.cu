// The gather of all rows (gather.cuh).
#include "plait/store/cuda/gather.cuh"
#include "plait/store/cuda/gather_rows.h"

namespace plait {

void gpu_gather_rows(const GatherRows& args, void* stream) {
  enqueue_gather(args, EveryRow{}, static_cast<cudaStream_t>(stream));
}

}  // namespace plait
