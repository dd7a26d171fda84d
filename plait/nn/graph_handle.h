// A graph as libtorch sees it: one rank's shards with the strategy that aggregates on them.
#pragma once

#include <torch/custom_class.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "plait/aggregate/aggregate.h"

namespace plait {

struct GraphHandleOptions {
  ShardOptions shards;
  Strategy strategy = Strategy::bulk;
  std::uint64_t max_width = 0;
};

class GraphHandle : public torch::CustomClassHolder {
 public:
  // Collective over `world`, which must outlive the handle.
  GraphHandle(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
              const GraphHandleOptions& options);

  World& world() const { return *world_; }
  // Wider inputs than before make the aggregator anew; collective.
  Aggregator& aggregator(std::uint64_t width);
  const GraphShards& shards() const { return shards_; }
  std::int64_t own() const { return static_cast<std::int64_t>(shards_.forward.own); }
  // Sum of the weights of each own row's edges: own() floats.
  torch::Tensor degree() const;
  AggregateCost cost() const;

 private:
  World* world_;
  GraphShards shards_;
  Strategy strategy_;
  std::uint64_t max_width_;
  std::unique_ptr<Aggregator> aggregator_;
  AggregateCost earlier_cost_;
};

// y = diag(post) A diag(pre) x with its gradient for x, collective in both directions.
// x: own x width, float32, CPU; pre and post: own, float32, or undefined.
// Throws c10::Error for other shapes, types and devices.
torch::Tensor aggregate(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph,
                        bool weighted, const std::optional<torch::Tensor>& pre,
                        const std::optional<torch::Tensor>& post);

}  // namespace plait
