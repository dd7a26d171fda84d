// For a build without CUDA.
#include "plait/base/gpu.h"
#include "plait/kernels/gpu_edges.h"

namespace plait {

struct GpuEdges::Arrays {};

GpuEdges::GpuEdges(const EdgeRows&) {
  use_gpu(0);  // throws
}
GpuEdges::~GpuEdges() = default;
std::uint64_t GpuEdges::rows() const { return 0; }
std::uint64_t GpuEdges::attention_scratch(const AttentionShape&) const { return 0; }
void GpuEdges::attention(AttentionForward, float*, void*) const {}
void GpuEdges::attention_backward(AttentionBackward, float*, void*) const {}
std::uint64_t GpuEdges::max_scratch(std::uint64_t) const { return 0; }
void GpuEdges::max_rows(MaxForward, float*, void*) const {}
void GpuEdges::max_rows_backward(MaxBackward, float*, void*) const {}

}  // namespace plait
