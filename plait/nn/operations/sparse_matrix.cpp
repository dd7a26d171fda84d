#include "plait/nn/operations/sparse_matrix.h"

#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/kernels/spmm.h"
#include "plait/nn/layers/dropout.h"
#include "plait/nn/operations/torch_device.h"

namespace plait {

SparseMatrix::SparseMatrix(Csr32 matrix, std::uint64_t columns, const torch::Device& device)
    : columns_(columns) {
  if (device.is_cuda())
    gpu_ = std::make_unique<GpuSparse>(matrix, columns);
  else
    matrix_ = std::move(matrix);
}

torch::Tensor SparseMatrix::times(const torch::Tensor& values, const torch::Tensor& x,
                                  bool fixed_order) const {
  const Timed timed("sparse features");
  const std::uint64_t rows = gpu_ ? gpu_->rows() : matrix_.vertices();
  const auto width = static_cast<std::uint64_t>(x.size(1));
  torch::Tensor y = torch::empty({static_cast<std::int64_t>(rows), x.size(1)}, x.options());
  if (gpu_) {
    const torch::Tensor partial_sums =
        torch::empty(static_cast<std::int64_t>(gpu_->scratch(width)), x.options());
    gpu_->multiply({.values = values.const_data_ptr<float>(),
                    .x = x.const_data_ptr<float>(),
                    .width = width,
                    .y = y.mutable_data_ptr<float>(),
                    .partial_sums = partial_sums.mutable_data_ptr<float>(),
                    .fixed_order = fixed_order},
                   current_stream(x.device()));
    return y;
  }
  spmm({.begin = matrix_.offsets.span().first(rows),
        .end = matrix_.offsets.span().subspan(1),
        .columns = matrix_.neighbours.data(),
        .weights = values.const_data_ptr<float>(),
        .x = {.base = x.const_data_ptr<float>(), .stride = width},
        .width = width,
        .y = y.mutable_data_ptr<float>(),
        .y_stride = width});
  return y;
}

torch::Tensor SparseMatrix::dropped(const torch::Tensor& values, const torch::Tensor& vertices,
                                    const DropoutStep& step) const {
  if (!step.active()) return values;
  const Timed timed("dropout");
  const std::uint64_t* const ids = ids_of(vertices);
  if (gpu_) {
    torch::Tensor kept = torch::empty_like(values);
    gpu_->drop(step, ids, values.const_data_ptr<float>(), kept.mutable_data_ptr<float>(),
               current_stream(values.device()));
    return kept;
  }
  torch::Tensor kept = values.clone();
  float* const data = kept.mutable_data_ptr<float>();
  parallel_blocks(matrix_.vertices(), 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      step.dropout->apply(ids[i], step.epoch, step.layer, matrix_.row(i),
                          {data + matrix_.offsets[i], matrix_.degree(i)});
  });
  return kept;
}

}  // namespace plait
