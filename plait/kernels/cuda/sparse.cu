#include "plait/kernels/cuda/sparse.h"
#include "plait/kernels/cuda/spmm.cuh"

namespace plait {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kLanes = 8;  // per row: bags of words hold some tens of entries

struct Entries {
  const EdgeOffset* offsets;
  const Slot* columns;
  std::uint64_t rows;
};

__global__ void drop_entries(const Dropout dropout, const DropoutStep step, const Entries a,
                             const std::uint64_t* vertices, const float* values, float* dropped) {
  const std::uint64_t thread = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const std::uint64_t row = thread / kLanes;
  if (row >= a.rows) return;
  const std::uint64_t vertex = vertices[row];
  const std::uint32_t epoch = step.current_epoch(), layer = step.layer;
  const EdgeOffset end = a.offsets[row + 1];
  for (EdgeOffset e = a.offsets[row] + thread % kLanes; e < end; e += kLanes) {
    const Slot column = a.columns[e];
    dropped[e] =
        values[e] * dropout.factor(dropout.numbers(vertex, epoch, layer, column)[column % 4]);
  }
}

}  // namespace

struct GpuSparse::Arrays {
  Arrays(const Csr32& matrix, std::uint64_t column_count)
      : offsets(matrix.offsets.span()),
        columns(matrix.neighbours.span()),
        groups(offsets.data(), offsets.data() + 1, matrix.vertices(), {}, nullptr),
        rows(matrix.vertices()),
        column_count(column_count) {}

  DeviceArray<EdgeOffset> offsets;
  DeviceArray<Slot> columns;
  RowGroups groups;
  std::uint64_t rows, column_count;
};

GpuSparse::GpuSparse(const Csr32& matrix, std::uint64_t columns)
    : arrays_(std::make_unique<const Arrays>(matrix, columns)) {}

GpuSparse::~GpuSparse() = default;

std::uint64_t GpuSparse::rows() const { return arrays_->rows; }
std::uint64_t GpuSparse::scratch(std::uint64_t width) const {
  return spmm_scratch(arrays_->groups, width);
}

void GpuSparse::multiply(const GpuProduct& product, void* stream) const {
  spmm({.groups = &arrays_->groups,
        .columns = arrays_->columns.data(),
        .weights = product.values,
        .x = {product.x, DType::f32, product.width},
        .x_rows = arrays_->column_count,
        .width = product.width,
        .y = {product.y, DType::f32, product.width},
        .partial_sums = product.partial_sums,
        .fixed_order = product.fixed_order},
       static_cast<cudaStream_t>(stream));
}

void GpuSparse::drop(const DropoutStep& step, const std::uint64_t* vertices, const float* values,
                     float* dropped, void* stream) const {
  if (arrays_->rows == 0) return;
  const std::uint64_t threads = arrays_->rows * kLanes;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  drop_entries<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      *step.dropout, step, {arrays_->offsets.data(), arrays_->columns.data(), arrays_->rows},
      vertices, values, dropped);
  check_cuda(cudaGetLastError(), "dropout");
}

}  // namespace plait
