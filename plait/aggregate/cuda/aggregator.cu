#include "plait/aggregate/cuda/aggregator.h"
#include "plait/exchange/cuda/exchange.cuh"
#include "plait/exchange/cuda/step_memory.cuh"
#include "plait/kernels/cuda/attention.cuh"
#include "plait/kernels/cuda/extremum.cuh"
#include "plait/kernels/cuda/pair_attention.cuh"
#include "plait/world/phase.h"

namespace plait {
namespace {

// The scratch memory with which operations over edges of one direction work.
class EdgeWork {
 public:
  // Takes the memory of operations of this kind. Throws DoesNotFitError, and UsageError for shapes
  // that there is no kernel for.
  template <class Operation>
  void prepare(const Operation& operation, std::span<const RowGroups> passes,
               const GpuExchange& exchange) {
    scratch_.reserve(scratch_floats(operation, passes), exchange.link().was_recorded());
  }
  template <class Operation>
  void run(const Operation& operation, const EdgePass& pass, cudaStream_t stream) {
    apply(operation, pass, scratch_.data(), stream);
  }

  // Operations of one kind take equally much scratch memory: the index in EdgeOperation, then heads
  // and features, or the width.
  template <class Operation>
  static PassesUse::Kind kind_of(const Operation& operation) {
    const std::uint64_t index = EdgeOperation(operation).index();
    if constexpr (requires { operation.shape; })
      return {index, operation.shape.heads, operation.shape.features};
    else
      return {index, operation.width, 0};
  }

 private:
  StepMemory scratch_;
};

class Engine : public GpuAggregator {
 public:
  Engine(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
         const ExchangeOptions& options)
      : exchange_(world, graph, symmetric, partition, options) {}
  // Finishes the exchange before memory is freed, because freeing waits for the GPU.
  ~Engine() override { exchange_.finish(); }

  void reserve(std::uint64_t width) override { exchange_.reserve(bytes_of_row(width)); }
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    exchange_.sum(Direction::along, {s.pre, s.post, s.weighted, x, y, width, exchange_.stream()});
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    exchange_.sum(Direction::against,
                  {s.post, s.pre, s.weighted, dy, dx, width, exchange_.stream()});
  }
  void over_edges(const float* rows, const EdgeOperation& any) override {
    const Phase phase("aggregate");
    const auto run = [&](auto operation) {
      constexpr Direction kDirection = decltype(operation)::kDirection;
      operation.edges = exchange_.edges(kDirection);
      set_vertices(operation, exchange_.vertices(kDirection));
      EdgeWork& work =
          kDirection == Direction::against && !exchange_.symmetric() ? against_ : along_;
      exchange_.gather_in_passes(
          kDirection, rows, operation.row_width(),
          {.kind = EdgeWork::kind_of(operation),
           .widths = pass_widths(operation),
           .prepare = [&](auto passes) { work.prepare(operation, passes, exchange_); },
           .work =
               [&](const EdgeRows& edges, const EdgePass& pass) {
                 operation.edges = edges;
                 work.run(operation, pass, exchange_.stream());
               },
           .results = operation.results()});
    };
    std::visit(run, any);
  }

  void all_reduce_sum(float* values, std::uint64_t count) override {
    exchange_.all_reduce_sum(values, count);
  }
  void exchange_rows(const SentRows& send, const ReceivedRows& received) override {
    exchange_.exchange_rows(send, received);
  }
  void run_part(StepPart part, const float* x, float* y, std::uint64_t width) override {
    exchange_.run_part(part, {nullptr, nullptr, false, x, y, width, exchange_.stream()});
  }
  std::vector<TraceSpan> trace(const float* x, float* y, std::uint64_t width) override {
    return exchange_.trace([&] { forward({}, x, y, width); });
  }
  std::uint64_t halo_rows() const override { return shard().slot_count() - shard().own; }
  bool recordable() const override { return exchange_.recordable(); }
  std::size_t passes(std::uint64_t width) override { return exchange_.passes(width); }

  ExchangeCost cost() const override { return exchange_.cost(); }
  void check() const override { exchange_.check(); }
  void about_to_wait() override { signals().mark(exchange_.stream()); }
  std::uint32_t recorded_steps() const override { return exchange_.link().signals().recorded(); }
  void replay(std::uint32_t steps, void* stream) override {
    exchange_.link().replayed(steps, static_cast<cudaStream_t>(stream));
  }
  std::uint64_t own() const override { return shard().own; }
  EdgeOffset edges() const override { return exchange_.edge_count(); }
  std::span<const float> degree() const override { return exchange_.degree(); }
  std::vector<float> edge_counts() const override { return exchange_.edge_counts(); }

 private:
  const DeviceShard& shard() const { return exchange_.graph(Direction::along).shard; }
  DeviceSignals& signals() { return exchange_.link().signals(); }

  GpuExchange exchange_;
  EdgeWork along_, against_;  // against_: unless the graph is symmetric
};

}  // namespace

std::unique_ptr<GpuAggregator> make_gpu_aggregator(World& world, const AnyCsr& graph,
                                                   bool symmetric, const Partition& partition,
                                                   const ExchangeOptions& options) {
  return std::make_unique<Engine>(world, graph, symmetric, partition, options);
}

}  // namespace plait
