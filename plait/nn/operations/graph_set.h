// A set of small graphs, block-diagonal in one graph, spread over ranks. It knows the graph of each
// of a rank's vertices, and pools the vertices' rows to one row per graph. A graph may be cut
// between ranks.
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>

#include "plait/nn/layers/layer.h"
#include "plait/nn/operations/sparse_matrix.h"

namespace plait {

class GraphSet {
 public:
  // The dataset is a set of graphs; `vertices` are the rank's own.
  GraphSet(const World& world, const Dataset& dataset, const VertexList& vertices,
           const torch::Device& device);

  // The graphs whose scores this rank makes, ascending. Each rank has a range of about equal size.
  const VertexList& own() const { return own_; }

  // Returns, for each own graph, the sum or mean of the rows of its vertices, on whichever ranks
  // they are; 0 for a graph without vertices. h: own vertices x width; result: own graphs x width,
  // differentiable. Collective in both directions.
  torch::Tensor pool(const torch::Tensor& h, const GraphRef& graph, Pool pool) const;

 private:
  // Return the sums of h's rows by graph, for all graphs: of own vertices, and of all ranks'
  // exactly.
  torch::Tensor own_sums(const torch::Tensor& h) const;
  torch::Tensor exact_sums(const torch::Tensor& h, const GraphRef& graph) const;

  std::shared_ptr<const SparseMatrix> members_;  // all graphs x own vertices; every entry is 1
  torch::Tensor ones_;                           // the values of these entries
  torch::Tensor graph_of_;                       // of each own vertex, int64
  torch::Tensor scale_;                          // 1 / vertices of each own graph, own x 1
  std::int64_t graphs_;                          // of all ranks
  std::uint64_t most_;                           // vertices in one
  std::int64_t first_;                           // of the own graphs
  VertexList own_;
};

// Returns the set that a dataset is, if it is one.
inline std::optional<GraphSet> graph_set_of(const World& world, const Dataset& dataset,
                                            const InputFeatures& input,
                                            const torch::Device& device) {
  if (!dataset.is_set_of_graphs()) return {};
  return GraphSet(world, dataset, input.vertices(), device);
}

}  // namespace plait
