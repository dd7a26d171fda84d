#include "plait/aggregate/aggregate.h"

#include <algorithm>
#include <array>

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
};
constexpr std::array kStrategies{
    StrategyEntry{Strategy::replicate, "replicate", HaloKind::complete},
    StrategyEntry{Strategy::bulk, "bulk", HaloKind::distinct},
    StrategyEntry{Strategy::get, "get", HaloKind::distinct}};

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
  throw UsageError(fmt::format("strategy '{}' is unknown; use replicate, bulk or get", name));
}

std::string_view to_string(Strategy strategy) {
  return kStrategies[static_cast<std::size_t>(strategy)].name;
}

HaloKind halo_for(Strategy strategy) {
  return kStrategies[static_cast<std::size_t>(strategy)].halo;
}

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

struct Aggregator::State {
  World& world;
  const GraphShards& shards;
  std::uint64_t max_width;
  SymmetricRows rows;
  std::unique_ptr<StrategyRun> forward, backward;
  AggregateCost cost;

  State(World& w, const GraphShards& s, Strategy strategy, std::uint64_t width)
      : world(w), shards(s), max_width(width), rows(w, slots(strategy) * width) {
    forward = make(strategy, shards.forward);
    backward = make(strategy, shards.backward());
  }

  std::uint64_t slots(Strategy strategy) const {
    if (strategy == Strategy::get) return shards.forward.own;
    return std::max(shards.forward.slot_count(), shards.backward().slot_count());
  }

  std::unique_ptr<StrategyRun> make(Strategy strategy, const Shard& shard) {
    return strategy == Strategy::get ? make_get_strategy(world, shard)
                                     : make_fetch_strategy(world, shard);
  }

  void run(StrategyRun& strategy, const Product& product) {
    require<UsageError>(product.width <= max_width, "width {} is more than the {} planned for",
                        product.width, max_width);
    if (world.size() == 1 && product.pre == nullptr) {
      // Alone, and nothing to scale: x is summed where it stands.
      AddTime time(cost.summing);
      spmm(spmm_args(product, product.x));
      return;
    }
    const Phase phase("aggregate");
    barrier();  // peers have read what the last step placed
    {
      AddTime time(cost.summing);
      scale_rows(product, rows.own());
    }
    barrier();  // own rows of all ranks are in place
    strategy.run(product, rows, cost);
  }

  void barrier() {
    AddTime time(cost.waiting);
    rows.barrier();
  }
};

Aggregator::Aggregator(World& world, const GraphShards& shards, Strategy strategy,
                       std::uint64_t max_width)
    : state_(std::make_unique<State>(world, shards, strategy, max_width)) {}

Aggregator::~Aggregator() = default;

void Aggregator::forward(const Scaling& s, const float* x, float* y, std::uint64_t width) {
  state_->run(*state_->forward, {state_->shards.forward, s.pre, s.post, s.weighted, x, y, width});
}

void Aggregator::backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) {
  state_->run(*state_->backward,
              {state_->shards.backward(), s.post, s.pre, s.weighted, dy, dx, width});
}

const AggregateCost& Aggregator::cost() const { return state_->cost; }
std::uint64_t Aggregator::own() const { return state_->shards.forward.own; }

}  // namespace plait
