// For a build without CUDA.
#include "plait/base/gpu.h"
#include "plait/kernels/gpu_sparse.h"

namespace plait {

struct GpuSparse::Arrays {};

GpuSparse::GpuSparse(const Csr32&, std::uint64_t) {
  use_gpu(0);  // throws
}
GpuSparse::~GpuSparse() = default;
std::uint64_t GpuSparse::rows() const { return 0; }
std::uint64_t GpuSparse::partial_sums() const { return 0; }
void GpuSparse::multiply(const GpuProduct&, void*) const {}
void GpuSparse::drop(const DropoutStep&, const std::uint64_t*, const float*, float*, void*) const {}

}  // namespace plait
