#include "plait/aggregate/aggregate.h"

#include <algorithm>
#include <array>

#include "plait/aggregate/strategy.h"
#include "plait/base/delay.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/saturating.h"
#include "plait/base/timer.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

struct StrategyEntry {
  Strategy strategy;
  std::string_view name;
  HaloKind halo;
  bool needs_gpus;
  // On GPUs:
  bool reaches_peers;  // each other's memory
  bool own_order;      // a row's sum depends on which of its edges are remote
};
// In the order of the enumeration.
constexpr std::array kStrategies{
    StrategyEntry{Strategy::replicate, "replicate", HaloKind::complete, false, false, false},
    StrategyEntry{Strategy::bulk, "bulk", HaloKind::distinct, false, false, false},
    StrategyEntry{Strategy::pipelined, "pipelined", HaloKind::distinct, true, true, false},
    StrategyEntry{Strategy::partial, "partial", HaloKind::distinct, true, true, true},
    StrategyEntry{Strategy::get, "get", HaloKind::distinct, false, true, true},
    StrategyEntry{Strategy::paged, "paged", HaloKind::distinct, true, false, true},
    StrategyEntry{Strategy::automatic, "auto", HaloKind::distinct, false, true, false}};

const StrategyEntry& entry_of(Strategy strategy) {
  return kStrategies[static_cast<std::size_t>(strategy)];
}

}  // namespace

void scale_rows(const OwnRows& rows, std::uint64_t count, float* out, std::uint64_t stride) {
  parallel_blocks(count, std::size_t{1} << 10, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* const x = rows.x + i * rows.width;
      float* const to = out + i * stride;
      if (rows.pre == nullptr)
        std::copy_n(x, rows.width, to);
      else
        for (std::size_t k = 0; k < rows.width; ++k) to[k] = rows.pre[i] * x[k];
    }
  });
}

void require_room(std::uint64_t width, std::uint64_t planned, bool lost) {
  require<DoesNotFitError>(!lost,
                           "the room for rows was given up for wider ones, which did not fit, and "
                           "could then not be had again; reserve() it when memory is free");
  require<UsageError>(width <= planned, "width {} is more than the {} planned for", width, planned);
}

Strategy parse_strategy(std::string_view name) {
  for (const auto& entry : kStrategies)
    if (entry.name == name) return entry.strategy;
  throw UsageError(
      fmt::format("strategy '{}' is unknown; use auto, replicate, bulk, pipelined, partial, get or "
                  "paged",
                  name));
}

std::string_view to_string(Strategy strategy) { return entry_of(strategy).name; }

void require_cpu_strategy(Strategy strategy) {
  require<UsageError>(!entry_of(strategy).needs_gpus,
                      "strategy {} needs GPUs; use --gpus, or --strategy bulk",
                      to_string(strategy));
}

bool needs_peer_access(Strategy strategy) { return entry_of(strategy).reaches_peers; }

void require_ordered_on_gpus(Strategy strategy) {
  require<UsageError>(!entry_of(strategy).own_order,
                      "strategy {} on GPUs sums in an order that depends on how the graph is cut; "
                      "with --exact use pipelined, bulk or replicate",
                      to_string(strategy));
}

namespace {

[[noreturn]] void sums_only() {
  throw UsageError(
      "attention and maxima need the rows themselves, but this way of moving rows gives sums only; "
      "use --strategy auto");
}

}  // namespace

void Aggregator::attention(const float*, AttentionForward) { sums_only(); }
void Aggregator::attention_backward(const float*, AttentionBackward) { sums_only(); }
void Aggregator::max_rows(const float*, MaxForward) { sums_only(); }
void Aggregator::max_rows_backward(const float*, MaxBackward) { sums_only(); }

HaloKind halo_for(Strategy strategy) { return entry_of(strategy).halo; }

namespace {

class CpuAggregator : public Aggregator {
 public:
  CpuAggregator(World& world, GraphShards shards, Strategy strategy, std::uint64_t width)
      : world_(world), shards_(std::move(shards)), get_(strategy == Strategy::get), rows_(world) {
    require_cpu_strategy(strategy);
    forward_ = make(shards_.forward);
    backward_ = make(shards_.backward());
    make_rows(width);
  }

  void reserve(std::uint64_t width) override {
    if (width > width_ || rows_.lost()) make_rows(std::max(width, width_));
  }
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    sum(along(), {x, s.pre, width}, s.post, s.weighted, y);
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    sum(against(), {dy, s.post, width}, s.pre, s.weighted, dx);
  }
  void attention(const float* rows, AttentionForward operation) override {
    operation.dropout = with_vertices(operation.dropout, along());
    over_edges(along(), {rows, nullptr, operation.shape.forward_width()}, operation,
               plait::attention);
  }
  void attention_backward(const float* rows, AttentionBackward operation) override {
    operation.dropout = with_vertices(operation.dropout, against());
    over_edges(against(), {rows, nullptr, operation.shape.backward_width()}, operation,
               plait::attention_backward);
  }
  void max_rows(const float* rows, MaxForward operation) override {
    over_edges(along(), {rows, nullptr, operation.width}, operation, plait::max_rows);
  }
  void max_rows_backward(const float* rows, MaxBackward operation) override {
    over_edges(against(), {rows, nullptr, operation.row_width()}, operation,
               plait::max_rows_backward);
  }

  AggregateCost cost() const override { return cost_; }
  std::uint64_t own() const override { return shards_.forward.own; }
  EdgeOffset edges() const override { return shards_.forward.edges(); }
  std::span<const float> degree() const override { return shards_.degree; }
  std::vector<float> edge_counts() const override {
    std::vector<float> counts(own());
    std::ranges::transform(
        shards_.forward.end(), shards_.forward.begin(), counts.begin(),
        [](EdgeOffset end, EdgeOffset begin) { return static_cast<float>(end - begin); });
    return counts;
  }

 private:
  std::unique_ptr<StrategyRun> make(const Shard& shard) {
    return get_ ? make_get_strategy(world_, shard) : make_fetch_strategy(world_, shard);
  }

  void make_rows(std::uint64_t width) {
    const std::uint64_t slots =
        get_ ? shards_.forward.own
             : std::max(shards_.forward.slot_count(), shards_.backward().slot_count());
    rows_.reserve((Bytes(slots) * row_stride(width)).value);
    width_ = width;
  }

  // A direction: the graph's or the transposed one's.
  struct Way {
    const Shard& shard;
    StrategyRun& strategy;
  };
  Way along() { return {shards_.forward, *forward_}; }
  Way against() { return {shards_.backward(), *backward_}; }

  // Where the rows of all slots stand when edges may read them.
  RowSource gather(const Way& way, const OwnRows& rows) {
    require_room(rows.width, width_, rows_.lost());
    const std::uint64_t stride = row_stride(rows.width);
    // Alone, and nothing to scale or to pad: x is read where it stands.
    if (world_.size() == 1 && rows.pre == nullptr && stride == rows.width)
      return {rows.x, stride, static_cast<Slot>(way.shard.own)};
    barrier();  // peers have read what the last step placed
    {
      AddTime time(cost_.summing);
      scale_rows(rows, way.shard.own, rows_.own(), stride);
    }
    delay_point();
    barrier();  // own rows of all ranks are in place
    delay_point();
    return way.strategy.gather(stride, rows_, cost_);
  }

  void sum(const Way& way, const OwnRows& rows, const float* post, bool weighted, float* y) {
    const Phase phase("aggregate");
    const Shard& shard = way.shard;
    const RowSource x = gather(way, rows);
    delay_point();
    AddTime time(cost_.summing);
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

  template <class Operation>
  void over_edges(const Way& way, const OwnRows& rows, Operation& operation,
                  void (*kernel)(const Operation&)) {
    const Phase phase("aggregate");
    const Shard& shard = way.shard;
    operation.edges = {shard.begin(), shard.end(), shard.slots.data(), gather(way, rows)};
    AddTime time(cost_.summing);
    kernel(operation);
  }

  static AttentionDropout with_vertices(AttentionDropout dropout, const Way& way) {
    if (!dropout.step.active()) return dropout;
    require<UsageError>(way.shard.vertices.size() == way.shard.slot_count(),
                        "attention is dropped by global ids, which the graph was placed without");
    dropout.row_vertex = dropout.slot_vertex = way.shard.vertices.data();
    return dropout;
  }

  void barrier() {
    AddTime time(cost_.waiting);
    rows_.barrier();
  }

  World& world_;
  const GraphShards shards_;
  const bool get_;
  std::uint64_t width_ = 0;
  SymmetricRows rows_;
  std::unique_ptr<StrategyRun> forward_, backward_;
  AggregateCost cost_;
};

}  // namespace

std::unique_ptr<Aggregator> make_aggregator(World& world, GraphShards shards, Strategy strategy,
                                            std::uint64_t max_width) {
  return std::make_unique<CpuAggregator>(world, std::move(shards), strategy, max_width);
}

}  // namespace plait
