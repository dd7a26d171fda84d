// A graph as libtorch sees it: one rank's shards with the strategy that aggregates on them.
#pragma once

#include <torch/custom_class.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "plait/aggregate/gpu_aggregator.h"
#include "plait/aggregate/route.h"
#include "plait/nn/gpu_torch.h"

namespace plait {

struct GraphHandleOptions {
  ShardOptions shards;
  Route route;  // on a GPU, tensors are there too
  std::uint64_t max_width = 0;
};

class GraphHandle : public torch::CustomClassHolder {
 public:
  // Collective over `world`, which must outlive the handle.
  GraphHandle(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
              const GraphHandleOptions& options);
  // On the CPU, by an aggregator that was made elsewhere, of a graph of so many vertices.
  GraphHandle(World& world, std::unique_ptr<Aggregator> aggregator, std::uint64_t vertices);
  ~GraphHandle() override;

  World& world() const { return *world_; }
  // The aggregator, for calls by this thread.
  class Use;
  // With room for rows of `width`; collective.
  Use aggregator(std::uint64_t width);
  std::int64_t own() const { return static_cast<std::int64_t>(aggregator_->own()); }
  EdgeOffset edges() const { return aggregator_->edges(); }
  std::vector<float> edge_counts() const { return aggregator_->edge_counts(); }
  // Of all ranks.
  std::uint64_t vertices() const { return vertices_; }
  // Whether results must not depend on the ranks (Route::exact).
  bool exact() const { return exact_; }
  // Where x and y are: the CPU, or the GPU on which the graph was placed.
  torch::Device device() const { return device_; }
  // Sum of the weights of each own row's edges: own() floats on device().
  torch::Tensor degree() const;
  // 1 / sqrt(degree), 0 where there is no edge: both sides of GCN's normalisation. Made once.
  const torch::Tensor& gcn_normalization();
  // 1 / number of edges, 0 where there is none: a mean's scale. Made once.
  const torch::Tensor& inverse_degree();
  AggregateCost cost() const { return aggregator_->cost(); }
  // Throws LostRankError if what was read so far is not right because a rank is lost.
  void check() const { aggregator_->check(); }
  // Whether aggregate() and all_reduce_sum() can be recorded (recorded.h).
  bool recordable() const {  // exact sums cross the host
    return gpu_aggregator_ != nullptr && gpu_aggregator_->recordable() && !exact_;
  }
  // Before results are read from the GPU: the watch over ranks then finds a GPU that hangs.
  void about_to_wait() {
    if (gpu_aggregator_ != nullptr) gpu_aggregator_->about_to_wait();
  }
  // Steps between ranks that were recorded so far; whoever replays some says so before.
  std::uint32_t recorded_steps() const {
    return gpu_aggregator_ == nullptr ? 0 : gpu_aggregator_->recorded_steps();
  }
  void replay(std::uint32_t steps) { gpu_aggregator_->replay(steps); }
  // The sum of a contiguous float32 array on device() over ranks, in place; collective.
  void all_reduce_sum(torch::Tensor& values);
  // The same of float64, and the greatest of float32 numbers (NaN where one is), through the hosts'
  // memory; contiguous, collective.
  void sum_on_hosts(torch::Tensor& values);
  void max_on_hosts(torch::Tensor& values);

 private:
  World* world_;
  torch::Device device_;
  std::unique_ptr<Aggregator> aggregator_;
  GpuAggregator* gpu_aggregator_ = nullptr;  // the same, on a GPU
  std::optional<c10::Stream> stream_;        // on which that works
  std::uint64_t vertices_;
  bool exact_ = false;
  torch::Tensor normalization_, inverse_degree_;
};

// On a GPU, its calls are in order with what this thread's current stream does before and after.
class GraphHandle::Use {
 public:
  Use(GraphHandle& graph, std::uint64_t width);
  Aggregator& operator*() const { return aggregator_; }
  Aggregator* operator->() const { return &aggregator_; }

 private:
  OnGpuOf gpu_;
  Aggregator& aggregator_;
  std::optional<StreamOrder> order_;
};

// y = diag(post) A diag(pre) x with its gradient for x, collective in both directions.
// x: own x width, float32, on the graph's device; pre and post: own, float32, or undefined.
// Throws c10::Error for other shapes, types and devices.
torch::Tensor aggregate(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph,
                        bool weighted, const std::optional<torch::Tensor>& pre,
                        const std::optional<torch::Tensor>& post);

// The sum of x over ranks, on all; its gradient on a rank is the sum of those of all. Collective in
// both directions. x: float32, on the graph's device.
torch::Tensor sum_over_ranks(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph);

}  // namespace plait
