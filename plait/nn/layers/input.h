// The features of a rank's own vertices, as the first layer reads them.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/nn/layers/dropout.h"
#include "plait/nn/operations/dense.h"
#include "plait/partition/partition.h"
#include "plait/table/table_layout.h"

namespace plait {

// Returns the normalisation that `automatic` means for these features, of all vertices: the same on
// every rank. This takes one pass over them. Other kinds are returned as they are.
Normalize resolved(Normalize normalize, const Features& features);

// The vertices whose features a rank reads, in any order.
struct InputVertices {
  VertexList ids;      // int64, on the CPU unless said otherwise
  VertexList numbers;  // the ids before renumbering, which key dropout
};
// Returns the vertices that a rank owns.
InputVertices input_vertices(const Partition& partition, int rank);

// Returns rows of dense features, normalised, as a table is filled with them (TableSource in
// table/table_layout.h). Arrays are shared.
TableSource input_rows(const Features& features, Normalize normalize);

// Features as they are read: a dataset's features, which outlive this, or rows that are made
// (TrainConfig::made_rows), whose width the dataset's features have.
struct FeatureSource {
  FeatureSource(const Features& given, TableSource made_rows = {})  // NOLINT: a plain wrapper
      : features(given), made(std::move(made_rows)) {}
  const Features& features;
  TableSource made;
};

// Rows of the features: dense as a tensor, or sparse as a CSR, so that bags of words of
// thousands of columns cost only the words that they hold.
class InputFeatures {
 public:
  // Puts the features onto `device` once, normalised; dense rows on their way to a GPU take the
  // host's memory for a block at a time. Without `gradient`, the arrays that times() needs for its
  // gradient are not kept.
  InputFeatures(const FeatureSource& source, const Partition& partition, int rank,
                Normalize normalize, const torch::Device& device = torch::kCPU,
                bool gradient = true)
      : InputFeatures(source, input_vertices(partition, rank), normalize, device, gradient) {}
  // The same for any vertices.
  InputFeatures(const FeatureSource& source, InputVertices vertices, Normalize normalize,
                const torch::Device& device = torch::kCPU, bool gradient = true);

  // Takes dense rows that are there and normalised, and their vertices on the same device.
  // `dropped`: the dropout that the rows are after already, which is the only one that dense() and
  // times() may then be asked for; or none.
  InputFeatures(torch::Tensor rows, InputVertices vertices, const DropoutStep& dropped = {});

  // Returns these dense features with the rows that `change` makes of theirs.
  template <class Change>
  InputFeatures with_rows(Change change) const {
    InputFeatures changed = *this;
    changed.dense_ = change(dense_);
    return changed;
  }

  // Lets go of the memory on a GPU behind the work that `stream` has been given by then, besides
  // that of the stream on which this was made.
  void also_used_on(const c10::Stream& stream) const;

  std::int64_t width() const { return width_; }
  bool is_sparse() const { return sparse_ != nullptr; }
  // Returns the vertices, and their numbers before renumbering, which key dropout.
  const VertexList& vertices() const { return vertices_; }
  const VertexList& numbers() const { return numbers_; }

  // Returns own x width, for a layer that aggregates first, and to be added to a layer's output.
  // For sparse features this takes width x width floats more.
  torch::Tensor dense(const DropoutStep& step) const;
  // Returns X W^T, own x out, with the gradient for weight (out x width).
  torch::Tensor times(const torch::Tensor& weight, const DropoutStep& step,
                      const GraphRef& graph = {}) const;

 private:
  struct Sparse;
  VertexList vertices_, numbers_;
  std::int64_t width_;
  torch::Tensor dense_;
  DropoutStep dropped_;  // of dense_
  std::shared_ptr<const Sparse> sparse_;
};

}  // namespace plait
