#include <algorithm>
#include <optional>

#include "plait/aggregate/device_edges_cuda.h"
#include "plait/aggregate/device_strategy_cuda.h"
#include "plait/aggregate/gpu_aggregator.h"
#include "plait/aggregate/strategy.h"
#include "plait/base/error.h"
#include "plait/base/saturating.h"
#include "plait/placement/own_rows.h"
#include "plait/symmetric/peer_access.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

constexpr HaloKind halo_on_gpus(Strategy strategy) {
  const bool all = strategy == Strategy::replicate || strategy == Strategy::get;
  return all ? HaloKind::complete : HaloKind::dense;
}

template <VertexId V>
DeviceShard place(const Csr<V>& rows, const Partition& partition, int rank,
                  const DeviceShardOptions& options, cudaStream_t stream) {
  const Csr<V> ordered = by_place(rows, partition, options.order != EdgeOrder::as_given);
  const std::vector<EdgeOffset> none{0};
  return make_device_shard<V>(
      {DeviceArray<EdgeOffset>(ordered.offsets.empty() ? std::span<const EdgeOffset>(none)
                                                       : ordered.offsets.span()),
       DeviceArray<V>(ordered.neighbours.span()), DeviceArray<float>(ordered.weights.span())},
      place_starts(partition), rank, options, stream);
}

void require_fixed_order(Strategy strategy, DType wire) {
  require_ordered_on_gpus(strategy);
  require<UsageError>(wire == DType::f32,
                      "rows that cross as {} give sums that depend on how the "
                      "graph is cut; exact ones need fp32",
                      to_string(wire));
}

// Collective.
DeviceLink::Transports transports_of(World& world, const GpuAggregatorOptions& options) {
  if (options.transport == DeviceTransport::vmm) {
    if (!needs_peer_access(options.strategy)) return {DeviceTransport::host, DeviceTransport::own};
    require_peer_access(world);
  }
  return {options.transport, options.transport};
}

class Engine : public GpuAggregator {
 public:
  Engine(World& world, const AnyCsr& any, bool symmetric, const Partition& partition,
         const GpuAggregatorOptions& options)
      : strategy_(options.strategy),
        stream_(static_cast<cudaStream_t>(options.stream)),
        link_(world, options.wire, transports_of(world, options)) {
    std::visit(
        [&](const auto& graph) {
          const int rank = world.rank();
          const auto prepare = [&](auto rows) {
            return options.shards.one_loop_each
                       ? with_one_loop_each(rows, partition, rank, options.shards.loop_weight)
                       : rows;
          };
          const DeviceShardOptions placed{halo_on_gpus(strategy_), options.shards.order};
          const DeviceGraphOptions kind{.with_sums = strategy_ == Strategy::partial,
                                        .fixed_order = placed.order == EdgeOrder::as_given};
          if (kind.fixed_order) require_fixed_order(strategy_, options.wire);
          const auto add = [&](auto& direction, const auto& rows) {
            direction.emplace(make_device_graph(
                world, place(rows, partition, rank, placed, stream_), kind, stream_));
          };
          const auto rows = prepare(own_rows(graph, partition, rank));
          degree_ = row_sums(rows);
          edges_ = rows.edges();
          counts_.resize(rows.vertices());
          for (std::uint64_t i = 0; i < rows.vertices(); ++i)
            counts_[i] = static_cast<float>(rows.degree(i));
          add(forward_, rows);
          if (options.shards.transposed && !symmetric)
            add(transposed_, prepare(own_columns(graph, partition, rank)));
          const auto vertices = [&](const DeviceGraph& direction) {
            return options.shards.slot_vertices ? vertices_of_slots(direction.shard, partition)
                                                : DeviceArray<std::uint64_t>();
          };
          forward_edges_.emplace(*forward_, vertices(*forward_));
          if (transposed_) transposed_edges_.emplace(*transposed_, vertices(*transposed_));
        },
        any);
    if (world.size() > 1 && (strategy_ == Strategy::bulk || strategy_ == Strategy::replicate))
      nccl_ = in_phase("joining by NCCL", [&] { return Nccl::join(world); });
    if (strategy_ == Strategy::paged) paged_.emplace(world);
    forward_run_ = make(*forward_, options);
    if (transposed_) backward_run_ = make(*transposed_, options);
    reserve(options.max_width);
  }
  ~Engine() override {
    link_.abandon_if_unwinding();
    cudaDeviceSynchronize();
  }

  void reserve(std::uint64_t width) override {
    if (width <= width_ && width_ > 0 && !lost()) return;
    require_known(false, width, stream_);
    require_movable(link_.was_recorded(), width);
    width = std::max({width, width_, std::uint64_t{1}});
    const auto slots_of = [&](const DeviceGraph& graph) {  // get stores no halo
      return strategy_ == Strategy::get ? graph.shard.own : graph.shard.slot_count();
    };
    std::uint64_t slots = slots_of(*forward_);
    if (transposed_) slots = std::max(slots, slots_of(*transposed_));
    const Bytes floats = Bytes(slots) * row_stride(width);
    if (paged_)
      paged_->reserve((Bytes(own()) * row_stride(width)).value, floats.value);
    else
      link_.reserve((floats * sizeof(float)).value);
    width_ = width;
  }
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    run(*forward_run_, {s.pre, s.post, s.weighted, x, y, width, stream_});
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    run(backward_run_ ? *backward_run_ : *forward_run_,
        {s.post, s.pre, s.weighted, dy, dx, width, stream_});
  }
  void attention(const float* rows, AttentionForward operation) override {
    over_edges(false, operation.shape.forward_width(), rows, operation, &DeviceEdges::attention);
  }
  void attention_backward(const float* rows, AttentionBackward operation) override {
    over_edges(true, operation.shape.backward_width(), rows, operation,
               &DeviceEdges::attention_backward);
  }
  void max_rows(const float* rows, MaxForward operation) override {
    over_edges(false, operation.width, rows, operation, &DeviceEdges::max_rows);
  }
  void max_rows_backward(const float* rows, MaxBackward operation) override {
    over_edges(true, operation.row_width(), rows, operation, &DeviceEdges::max_rows_backward);
  }

  void all_reduce_sum(float* values, std::uint64_t count) override {
    const Phase phase("summing over ranks");
    link_.operation(stream_, [&] { link_.all_reduce_sum(values, count, stream_); });
  }
  void run_part(StepPart part, const float* x, float* y, std::uint64_t width) override {
    require_room(width);
    link_.operation(stream_, [&] {
      forward_run_->run_part(part, {nullptr, nullptr, false, x, y, width, stream_});
    });
  }
  std::vector<TraceSpan> trace(const float* x, float* y, std::uint64_t width) override {
    DeviceTrace trace;
    link_.set_trace(&trace);
    forward({}, x, y, width);
    link_.set_trace(nullptr);
    return trace.spans();
  }
  std::uint64_t halo_rows() const override {
    return forward_->shard.slot_count() - forward_->shard.own;
  }
  bool recordable() const override {
    return forward_run_->recordable(width_) &&
           (!backward_run_ || backward_run_->recordable(width_));
  }
  std::size_t passes(std::uint64_t width) override {
    return forward_run_->passes({nullptr, nullptr, false, nullptr, nullptr, width, stream_});
  }

  AggregateCost cost() const override {
    AggregateCost cost = cost_;
    if (link_.ranks() > 1) cost.waiting = link_.signals().waited();
    link_.signals().check();
    return cost;
  }
  void check() const override { link_.signals().check(); }
  void about_to_wait() override { link_.signals().mark(stream_); }
  std::uint32_t recorded_steps() const override { return link_.signals().recorded(); }
  void replay(std::uint32_t steps) override { link_.replayed(steps); }
  std::uint64_t own() const override { return forward_->shard.own; }
  EdgeOffset edges() const override { return edges_; }
  std::span<const float> degree() const override { return degree_; }
  std::vector<float> edge_counts() const override { return counts_; }

 private:
  std::unique_ptr<DeviceStrategy> make(const DeviceGraph& graph,
                                       const GpuAggregatorOptions& options) {
    if (strategy_ == Strategy::get) return make_device_get(graph, link_, options.get);
    if (paged_) return make_paged(graph, link_, *paged_);
    if (nccl_ || options.sum_by_cusparse)
      return make_device_bulk(graph, link_, nccl_.get(), options.sum_by_cusparse);
    return make_pipelined(graph, link_, options.pass_shares);
  }
  template <class Operation>
  void over_edges(bool back, std::uint64_t width, const float* rows, const Operation& operation,
                  void (DeviceEdges::*kernel)(const DeviceEdges::Rows&, Operation)) {
    require_room(width);
    const Phase phase("aggregate");
    const bool turned = back && transposed_;
    DeviceStrategy& strategy = turned ? *backward_run_ : *forward_run_;
    DeviceEdges& edges = turned ? *transposed_edges_ : *forward_edges_;
    link_.operation(stream_, [&] {
      (edges.*kernel)({rows, strategy, stream_, link_.was_recorded()}, operation);
    });
    count(strategy, turned ? *transposed_ : *forward_, width);
  }

  bool lost() const { return paged_ ? paged_->lost() : link_.lost(); }
  void require_room(std::uint64_t width) const { plait::require_room(width, width_, lost()); }

  void run(DeviceStrategy& strategy, const DeviceProduct& product) {
    require_room(product.width);
    if (product.width == 0) return;
    const Phase phase("aggregate");
    link_.operation(stream_, [&] { strategy.run(product); });
    const bool back = &strategy == backward_run_.get();
    count(strategy, back ? *transposed_ : *forward_, product.width);
  }

  // All strategies but `get` bring the halo's rows, each once.
  void count(const DeviceStrategy& strategy, const DeviceGraph& graph, std::uint64_t width) {
    const std::uint64_t bytes = strategy.bytes_fetched(width);
    cost_.bytes_fetched += bytes;
    if (strategy_ == Strategy::get) return;
    cost_.fetched_from.resize(static_cast<std::size_t>(link_.ranks()));
    const std::uint64_t halo = graph.shard.slot_count() - graph.shard.own;
    for (const HaloBlock& block : graph.shard.halo)
      if (block.rows > 0)
        cost_.fetched_from[static_cast<std::size_t>(block.owner)] += bytes / halo * block.rows;
  }

  const Strategy strategy_;
  const cudaStream_t stream_;
  DeviceLink link_;
  std::unique_ptr<Nccl> nccl_;
  std::optional<PagedRows> paged_;
  std::optional<DeviceGraph> forward_, transposed_;
  std::unique_ptr<DeviceStrategy> forward_run_, backward_run_;
  std::optional<DeviceEdges> forward_edges_, transposed_edges_;
  std::uint64_t width_ = 0;
  EdgeOffset edges_ = 0;  // of own rows
  std::vector<float> degree_, counts_;
  AggregateCost cost_;
};

}  // namespace

std::unique_ptr<GpuAggregator> make_gpu_aggregator(World& world, const AnyCsr& graph,
                                                   bool symmetric, const Partition& partition,
                                                   const GpuAggregatorOptions& options) {
  return std::make_unique<Engine>(world, graph, symmetric, partition, options);
}

}  // namespace plait
