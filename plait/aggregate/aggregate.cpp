#include "plait/aggregate/aggregate.h"

#include <algorithm>
#include <array>
#include <optional>

#include "plait/aggregate/strategy.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/timer.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

struct StrategyEntry {
  Strategy strategy;
  std::string_view name;
  HaloKind halo;
  bool needs_gpus = false;
};
// In the order of the enumeration.
constexpr std::array kStrategies{
    StrategyEntry{Strategy::replicate, "replicate", HaloKind::complete},
    StrategyEntry{Strategy::bulk, "bulk", HaloKind::distinct},
    StrategyEntry{Strategy::pipelined, "pipelined", HaloKind::distinct, true},
    StrategyEntry{Strategy::partial, "partial", HaloKind::distinct, true},
    StrategyEntry{Strategy::get, "get", HaloKind::distinct},
    StrategyEntry{Strategy::paged, "paged", HaloKind::distinct, true},
    StrategyEntry{Strategy::automatic, "auto", HaloKind::distinct}};

const StrategyEntry& entry_of(Strategy strategy) {
  return kStrategies[static_cast<std::size_t>(strategy)];
}

void scale_rows(const Product& product, float* out) {
  const std::uint64_t width = product.width;
  parallel_blocks(product.shard.own, std::size_t{1} << 10, [&](std::size_t begin, std::size_t end) {
    if (product.pre == nullptr) {
      std::copy_n(product.x + begin * width, (end - begin) * width, out + begin * width);
      return;
    }
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t k = i * width; k < (i + 1) * width; ++k)
        out[k] = product.pre[i] * product.x[k];
  });
}

}  // namespace

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

HaloKind halo_for(Strategy strategy) { return entry_of(strategy).halo; }

SpmmArgs spmm_args(const Product& product, const float* base) {
  const Shard& shard = product.shard;
  return {.begin = shard.begin(),
          .end = shard.end(),
          .columns = shard.slots.data(),
          .weights = product.weighted && !shard.weights.empty() ? shard.weights.data() : nullptr,
          .x = {.base = base, .stride = product.width, .own = static_cast<Slot>(shard.own)},
          .width = product.width,
          .y = product.y,
          .y_stride = product.width,
          .row_scale = product.post};
}

namespace {

class CpuAggregator : public Aggregator {
 public:
  CpuAggregator(World& world, GraphShards shards, Strategy strategy, std::uint64_t width)
      : world_(world), shards_(std::move(shards)), get_(strategy == Strategy::get) {
    require_cpu_strategy(strategy);
    forward_ = make(shards_.forward);
    backward_ = make(shards_.backward());
    make_rows(width);
  }

  void reserve(std::uint64_t width) override {
    if (width > width_) make_rows(width);
  }
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    run(*forward_, {shards_.forward, s.pre, s.post, s.weighted, x, y, width});
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    run(*backward_, {shards_.backward(), s.post, s.pre, s.weighted, dy, dx, width});
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
    rows_.reset();  // its memory first
    rows_.emplace(world_, slots * width);
    width_ = width;
  }

  void run(StrategyRun& strategy, const Product& product) {
    require<UsageError>(product.width <= width_, "width {} is more than the {} planned for",
                        product.width, width_);
    if (world_.size() == 1 && product.pre == nullptr) {
      // Alone, and nothing to scale: x is summed where it stands.
      AddTime time(cost_.summing);
      spmm(spmm_args(product, product.x));
      return;
    }
    const Phase phase("aggregate");
    barrier();  // peers have read what the last step placed
    {
      AddTime time(cost_.summing);
      scale_rows(product, rows_->own());
    }
    barrier();  // own rows of all ranks are in place
    strategy.run(product, *rows_, cost_);
  }

  void barrier() {
    AddTime time(cost_.waiting);
    rows_->barrier();
  }

  World& world_;
  const GraphShards shards_;
  const bool get_;
  std::uint64_t width_ = 0;
  std::optional<SymmetricRows> rows_;
  std::unique_ptr<StrategyRun> forward_, backward_;
  AggregateCost cost_;
};

}  // namespace

std::unique_ptr<Aggregator> make_aggregator(World& world, GraphShards shards, Strategy strategy,
                                            std::uint64_t max_width) {
  return std::make_unique<CpuAggregator>(world, std::move(shards), strategy, max_width);
}

}  // namespace plait
