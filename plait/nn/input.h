// The features of a rank's own vertices, as the first layer reads them; and dropout.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/nn/random.h"
#include "plait/partition/partition.h"

namespace plait {

// Global ids of own vertices, by row.
using VertexList = std::shared_ptr<const std::vector<std::uint64_t>>;

// Which random numbers dropout takes; without `dropout`, nothing is dropped.
struct DropoutStep {
  const Dropout* dropout = nullptr;  // must outlive the backward pass
  std::uint32_t epoch = 0;
  std::uint32_t layer = 0;

  bool active() const { return dropout != nullptr && dropout->p() > 0; }
};

// Row i of x (own x width, float32) times the mask of vertex i; differentiable.
torch::Tensor drop(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step);

// Own rows of the features: dense as a tensor, or sparse as a CSR, so that bags of words of
// thousands of columns cost only what they hold.
class InputFeatures {
 public:
  InputFeatures(const Features& features, const Partition& partition, int rank,
                Normalize normalize);

  std::int64_t width() const { return width_; }
  bool is_sparse() const { return sparse_ != nullptr; }
  const VertexList& vertices() const { return vertices_; }

  // own x width, for a layer that aggregates first. Only if not sparse.
  torch::Tensor dense(const DropoutStep& step) const;
  // X W^T, own x out, with the gradient for weight (out x width).
  torch::Tensor times(const torch::Tensor& weight, const DropoutStep& step) const;

 private:
  struct Sparse;
  VertexList vertices_;
  std::int64_t width_;
  torch::Tensor dense_;
  std::shared_ptr<const Sparse> sparse_;
};

}  // namespace plait
