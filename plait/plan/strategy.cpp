#include "plait/plan/strategy.h"

#include <array>
#include <string>

#include "plait/base/error.h"

namespace plait {
namespace {

constexpr StrategyOnDevice kNowhere{false, HaloKind::distinct, HaloStore::distinct, false};
constexpr StrategyOnDevice kFetched{true, HaloKind::distinct, HaloStore::distinct, true};

constexpr StrategyOnDevice dense(HaloStore store) {
  const bool rows = store == HaloStore::packed || store == HaloStore::dense;
  return {true, HaloKind::dense, store, rows};
}
constexpr StrategyOnDevice complete(HaloStore store) {
  return {true, HaloKind::complete, store, store == HaloStore::complete};
}

// In the order of the enumeration.
constexpr std::array kStrategies{
    StrategyTraits{.strategy = Strategy::replicate,
                   .name = "replicate",
                   .cpu = complete(HaloStore::complete),
                   .gpu = complete(HaloStore::complete),
                   .by_nccl = true,
                   .reaches_peers = false,
                   .own_order = false,
                   .converts_rows = true},
    StrategyTraits{.strategy = Strategy::bulk,
                   .name = "bulk",
                   .cpu = kFetched,
                   .gpu = dense(HaloStore::packed),
                   .by_nccl = true,
                   .reaches_peers = false,
                   .own_order = false,
                   .converts_rows = true},
    StrategyTraits{.strategy = Strategy::pipelined,
                   .name = "pipelined",
                   .cpu = kNowhere,
                   .gpu = dense(HaloStore::dense),
                   .reaches_peers = true,
                   .own_order = false,
                   .converts_rows = true},
    StrategyTraits{.strategy = Strategy::partial,
                   .name = "partial",
                   .cpu = kNowhere,
                   .gpu = dense(HaloStore::sums),
                   .reaches_peers = true,
                   .own_order = true,
                   .converts_rows = true},
    StrategyTraits{.strategy = Strategy::get,
                   .name = "get",
                   .cpu = {true, HaloKind::distinct, HaloStore::none, true},
                   .gpu = complete(HaloStore::none),
                   .reaches_peers = true,
                   .own_order = true,
                   .converts_rows = false},
    StrategyTraits{.strategy = Strategy::paged,
                   .name = "paged",
                   .cpu = kNowhere,
                   .gpu = dense(HaloStore::paged),
                   .reaches_peers = false,
                   .own_order = true,
                   .converts_rows = false},
    StrategyTraits{.strategy = Strategy::automatic,
                   .name = "auto",
                   .cpu = kFetched,
                   .gpu = dense(HaloStore::dense),
                   .reaches_peers = true,
                   .own_order = false,
                   .converts_rows = true}};

}  // namespace

const StrategyTraits& traits_of(Strategy strategy) {
  return kStrategies[static_cast<std::size_t>(strategy)];
}

Strategy parse_strategy(std::string_view name) {
  std::string names;
  for (const StrategyTraits& traits : kStrategies) {
    if (traits.name == name) return traits.strategy;
    names += (names.empty() ? "" : ", ") + std::string(traits.name);
  }
  throw UsageError(fmt::format("strategy '{}' is unknown; use one of {}", name, names));
}

std::string_view to_string(Strategy strategy) { return traits_of(strategy).name; }

}  // namespace plait
