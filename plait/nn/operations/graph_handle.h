// A graph as libtorch sees it: one rank's shards with the strategy that aggregates on them.
#pragma once

#include <torch/custom_class.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/process_owned.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/sample/cooperative.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/world/host_sums.h"

namespace plait {

// Factors that layers need on a sample, because it lacks some edges of its own rows: float32, where
// the graph is.
struct SampleScales {
  torch::Tensor gcn_normalization;  // one per input: as GraphHandle's, by the whole graph's edges
  torch::Tensor sums;  // one per own row: its edges in the graph / in the sample, 1 without edges
  torch::Tensor inverse_degree;  // one per own row: as GraphHandle's, by the sample's edges
};

// The origin of the rows of a sample's inputs, for share_rows().
struct RowSharing {
  SharedRows rows;
  torch::Tensor sent, places;  // on a GPU: the same arrays of `rows`, int64, there
};

// One rank's part of a graph with its aggregator. Collective calls are made by all ranks in the
// same order, from one thread each.
class GraphHandle : public torch::CustomClassHolder {
 public:
  // Collective over `world`, which must outlive the handle. Places the graph on the CPU, or on the
  // current GPU, where tensors then are too; `options.stream` is ignored: on a GPU the handle works
  // on a stream of its own. Throws DoesNotFitError if the graph does not fit, and errors as
  // make_aggregator().
  GraphHandle(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
              const ExchangeOptions& options);
  // Makes a handle on the CPU, with an aggregator that was made elsewhere. `vertices`: of all
  // ranks.
  GraphHandle(World& world, std::unique_ptr<Aggregator> aggregator, std::uint64_t vertices);
  // Makes a handle of a sample of the graph that `placed` has placed, on the same device; none of
  // its operations over edges is collective. On a GPU the sample works on this thread's current
  // stream. `rows`: where rows of its inputs come from, if not all are this rank's.
  GraphHandle(c10::intrusive_ptr<GraphHandle> placed, std::unique_ptr<Aggregator> sample,
              std::uint64_t vertices, SampleScales scales, std::optional<RowSharing> rows = {});
  // Makes a handle of edges between this process's rows, by make_gpu_sample_aggregator(), whose
  // streams are both `stream`. `counts`: the number of each row's edges, float32, on that GPU.
  GraphHandle(World& world, std::unique_ptr<Aggregator> edges, const c10::Stream& stream,
              torch::Tensor counts);
  ~GraphHandle() override;

  World& world() const { return *world_; }
  // Collective among all ranks of `all`, which outlives the handle, and whose host_world() is the
  // handle's world: ranks of every host have placed the same graph on GPUs. From here on,
  // all_reduce_sum() is over all of them. If it is the same world, nothing changes.
  void sum_over(World& all);
  class Use;  // the aggregator, for calls by this thread
  // Collective. Returns the aggregator with room for rows of `width` floats. Throws as
  // Aggregator::reserve(), and UsageError on all ranks where widths differ: on the CPU always, on
  // GPUs at the first operation of a width.
  Use aggregator(std::uint64_t width);
  // Numbers of own rows, and of their edges.
  std::int64_t own() const { return static_cast<std::int64_t>(aggregator_->own()); }
  // Returns the number of rows that operations take (Aggregator::inputs).
  std::int64_t inputs() const { return static_cast<std::int64_t>(aggregator_->inputs()); }
  bool is_sample() const { return scales_.has_value(); }
  // Returns the factors and the edges of a sample.
  const SampleScales& sample_scales() const { return *scales_; }
  const Aggregator& sample_edges() const { return *aggregator_; }
  // Returns where the rows come from that share_rows() takes for inputs; null: all are this rank's.
  const RowSharing* shared_rows() const { return shared_rows_ ? &*shared_rows_ : nullptr; }
  EdgeOffset edges() const { return aggregator_->edges(); }
  // Returns the number of each own row's edges, whatever they weigh: own() floats on device().
  torch::Tensor edge_counts() const;
  // Returns the number of vertices of all ranks.
  std::uint64_t vertices() const { return vertices_; }
  // Tells whether results must not depend on the number of ranks (Route::exact).
  bool exact() const { return exact_; }
  // Returns where x and y are: the CPU, or the GPU on which the graph was placed.
  torch::Device device() const { return device_; }
  // Returns the sum of the weights of each own row's edges: own() floats on device().
  torch::Tensor degree();
  // Returns 1 / sqrt(degree), 0 where that is not positive: both sides of GCN's normalisation.
  // inputs() floats on device(), made once. The degree of a sample is by the edges of the graph.
  const torch::Tensor& gcn_normalization();
  // Returns for each own row the factor that turns the sum over a sample's edges into an estimate,
  // without bias, of the sum over all edges; undefined unless the graph is a sample.
  torch::Tensor sum_scale() const { return scales_ ? scales_->sums : torch::Tensor(); }
  // Returns 1 / number of edges, 0 for rows without edges: a mean's scale. own() floats on
  // device(), made once.
  const torch::Tensor& inverse_degree();
  ExchangeCost cost() const {
    ExchangeCost cost = aggregator_->cost();
    cost.fetching += sharing_seconds_;
    return cost;
  }
  // Returns the time that share_rows() has taken, which adds its own.
  double& sharing_seconds() { return sharing_seconds_; }
  // Throws LostRankError if results that were read so far are wrong because a rank is lost.
  void check() const { aggregator_->check(); }
  // Tells whether aggregate() and all_reduce_sum() can be recorded (recorded.h).
  bool recordable() const {  // exact sums, and sums over hosts, go through a host's memory
    return gpu_aggregator_ != nullptr && gpu_aggregator_->recordable() && !exact_ && !host_sums_;
  }
  // Must be called before results are read from the GPU: the watch over ranks then finds a GPU that
  // hangs.
  void about_to_wait() {
    if (gpu_aggregator_ != nullptr) gpu_aggregator_->about_to_wait();
  }
  // recorded_steps() returns the number of steps between ranks that were recorded so far. Whoever
  // replays some, on this thread's current stream, calls replay() with their number before.
  std::uint32_t recorded_steps() const {
    return gpu_aggregator_ == nullptr ? 0 : gpu_aggregator_->recorded_steps();
  }
  void replay(std::uint32_t steps) { gpu_aggregator_->replay(steps, current_stream(device_)); }
  // Collective. Replaces a contiguous float32 array on device() by its sum over ranks. On a GPU it
  // is enqueued on the handle's own stream, which is this thread's current one, and the call does
  // not wait for the GPU. After sum_over() another world, the first rank of each host does wait:
  // until its GPU has the sum over the host, and for the first ranks of the other hosts.
  void all_reduce_sum(torch::Tensor& values);
  // Waits for the work of this thread's current stream, if all_reduce_sum() would do so.
  void wait_before_sums();
  // Collective. Sends rows to other ranks, `counts[r]` consecutive ones to rank r, and returns the
  // rows that come, `coming[r]` from rank r, in the order of ranks. rows: contiguous, float32, on
  // device().
  torch::Tensor exchange_rows(const torch::Tensor& rows, std::span<const std::uint64_t> counts,
                              std::span<const std::uint64_t> coming);
  // Adds rows on a GPU, on this thread's current stream, in a fixed order.
  void add_in_order(const AddRows& args);
  // Collective, through the hosts' memory, for contiguous arrays: the sum over ranks of float64,
  // and the greatest over ranks of float32 numbers (NaN if one is NaN). Both wait for the GPU.
  void sum_on_hosts(torch::Tensor& values);
  void max_on_hosts(torch::Tensor& values);

 private:
  void sum_over_hosts(torch::Tensor& values);

  World* world_;
  torch::Device device_;
  ProcessOwned<Aggregator> aggregator_;
  GpuAggregator* gpu_aggregator_ = nullptr;  // the same, on a GPU
  std::optional<c10::Stream> stream_;        // on which the GPU aggregator works
  std::uint64_t vertices_;
  bool exact_ = false;
  std::set<std::uint64_t> agreed_widths_;  // on a GPU; on the CPU each operation compares its own
  torch::Tensor counts_;                   // as edge_counts(), if they were given
  torch::Tensor normalization_, inverse_degree_;
  std::optional<SampleScales> scales_;
  std::optional<RowSharing> shared_rows_;
  std::optional<GpuOrderedSums> ordered_sums_;  // made by the first add_in_order()
  std::optional<HostSums> host_sums_;           // made by sum_over()
  double sharing_seconds_ = 0;
  c10::intrusive_ptr<GraphHandle> placed_;  // of a sample: it sums over ranks
};

// Access to the aggregator. On a GPU, its calls come after the work that this thread's current
// stream has been given before, and before the work that it is given later.
class GraphHandle::Use {
 public:
  // As GraphHandle::aggregator().
  Use(GraphHandle& graph, std::uint64_t width);
  Aggregator& operator*() const { return aggregator_; }
  Aggregator* operator->() const { return &aggregator_; }

 private:
  OnGpuOf gpu_;
  Aggregator& aggregator_;
  std::optional<StreamOrder> order_;
};

// Returns the own rows of an operation's input: all of it unless the graph is a sample, whose own
// rows are the first.
inline torch::Tensor own_rows(const torch::Tensor& rows,
                              const c10::intrusive_ptr<GraphHandle>& graph) {
  return graph->is_sample() ? rows.narrow(0, 0, graph->own()) : rows;
}

// Returns y = diag(post) A diag(pre) x, own x width, with its gradient for x. Collective in both
// directions. x: inputs x width, float32, on the graph's device; pre (inputs) and post (own):
// float32, or undefined: all 1.
// Throws c10::Error for other shapes, types and devices, and errors as Aggregator::forward().
torch::Tensor aggregate(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph,
                        bool weighted, const std::optional<torch::Tensor>& pre,
                        const std::optional<torch::Tensor>& post);

// Returns the sum of x over ranks, on all; the gradient on each rank is the sum of the gradients of
// all. Collective in both directions. x: float32, on the graph's device.
torch::Tensor sum_over_ranks(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph);

}  // namespace plait
