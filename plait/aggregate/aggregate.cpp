#include "plait/aggregate/aggregate.h"

#include <algorithm>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/delay.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/exchange/cpu_exchange.h"
#include "plait/kernels/spmm.h"
#include "plait/plan/route.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

class CpuAggregator : public Aggregator {
 public:
  CpuAggregator(World& world, GraphShards shards, const Route& route, std::uint64_t width)
      : exchange_(world, std::move(shards), route, width) {}

  void reserve(std::uint64_t width) override { exchange_.reserve(bytes_of_row(width)); }
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    sum(Direction::along, {x, s.pre, width}, s.post, s.weighted, y);
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    sum(Direction::against, {dy, s.post, width}, s.pre, s.weighted, dx);
  }
  void over_edges(const float* rows, const EdgeOperation& any) override {
    const Phase phase("aggregate");
    const auto run = [&](auto operation) {
      constexpr Direction kDirection = decltype(operation)::kDirection;
      operation.edges = exchange_.edges(kDirection);
      set_vertices(operation, exchange_.vertices(kDirection));
      exchange_.gather(kDirection, rows, bytes_of_row(operation.row_width()),
                       {.work = [&](const EdgeRows& edges) {
                         operation.edges = edges;
                         apply(operation);
                       }});
    };
    std::visit(run, any);
  }

  ExchangeCost cost() const override { return exchange_.cost(); }
  std::uint64_t own() const override { return shards().forward.own; }
  EdgeOffset edges() const override { return shards().forward.edges(); }
  std::span<const float> degree() const override { return shards().degree; }
  std::vector<float> edge_counts() const override {
    const Shard& shard = shards().forward;
    std::vector<float> counts(own());
    std::ranges::transform(
        shard.end(), shard.begin(), counts.begin(),
        [](EdgeOffset end, EdgeOffset begin) { return static_cast<float>(end - begin); });
    return counts;
  }

 private:
  const GraphShards& shards() const { return exchange_.shards(); }

  void sum(Direction direction, const OwnRows& rows, const float* post, bool weighted, float* y) {
    const Phase phase("aggregate");
    const Shard& shard = exchange_.shard(direction);
    const RowSource x = exchange_.bring(direction, rows);
    delay_point();
    const Timed timed("sum");
    AddTime time(exchange_.working());
    spmm({.begin = shard.begin(),
          .end = shard.end(),
          .columns = shard.slots.data(),
          .weights = weighted && !shard.weights.empty() ? shard.weights.data() : nullptr,
          .x = x,
          .width = rows.width,
          .y = y,
          .y_stride = rows.width,
          .row_scale = post});
  }

  CpuExchange exchange_;
};

}  // namespace

std::unique_ptr<Aggregator> make_aggregator(World& world, GraphShards shards, Strategy strategy,
                                            std::uint64_t max_width) {
  return std::make_unique<CpuAggregator>(world, std::move(shards), Route{.strategy = strategy},
                                         max_width);
}

std::unique_ptr<Aggregator> make_aggregator(World& world, const AnyCsr& graph, bool symmetric,
                                            const Partition& partition,
                                            const ExchangeOptions& options) {
  const Route route = resolved(options.route);
  if (route.gpu) return make_gpu_aggregator(world, graph, symmetric, partition, options);
  return std::make_unique<CpuAggregator>(
      world, cpu_shards(world, graph, symmetric, partition, options), route, options.max_width);
}

std::unique_ptr<Aggregator> make_aggregator_for_host_arrays(World& world, const AnyCsr& graph,
                                                            bool symmetric,
                                                            const Partition& partition,
                                                            const ExchangeOptions& options) {
  if (!options.route.gpu) return make_aggregator(world, graph, symmetric, partition, options);
  return on_host_memory(make_gpu_aggregator(world, graph, symmetric, partition, options));
}

}  // namespace plait
