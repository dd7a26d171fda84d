#include "plait/plan/choose.h"

#include "plait/base/error.h"

namespace plait {

Route choose(Route route) {
  require<UsageError>(route.gpu || route.transport == DeviceTransport::vmm,
                      "--transport {} works between GPUs; add --gpus", to_string(route.transport));
  if (route.strategy == Strategy::automatic)
    route.strategy = route.gpu ? Strategy::pipelined : Strategy::bulk;
  const StrategyTraits& traits = traits_of(route.strategy);
  require<UsageError>(traits.on(route.gpu).possible,
                      "strategy {} needs GPUs; use --gpus, or --strategy bulk", traits.name);
  require<UsageError>(route.wire == DType::f32 || traits.converts_rows,
                      "strategy {} moves rows as they are; use fp32 on the wire, or {}",
                      traits.name, to_string(Strategy::pipelined));
  if (route.gets_on_gpus()) {
    require_in_range(route.get);
    require<UsageError>(!route.reads_by_nvshmem() || route.transport == DeviceTransport::nvshmem,
                        "--read-with nvshmem reads memory of NVSHMEM alone; add --transport "
                        "nvshmem");
  }
  if (!route.gpu || !route.exact) return route;
  require<UsageError>(!traits.own_order,
                      "strategy {} on GPUs sums in an order that depends on how the graph is cut; "
                      "with --exact use pipelined, bulk or replicate",
                      traits.name);
  require<UsageError>(route.wire == DType::f32,
                      "rows that cross as {} give sums that depend on how the graph is cut; exact "
                      "sums need fp32",
                      to_string(route.wire));
  return route;
}

void require_rows(const Route& route) {
  require<UsageError>(
      route.placement().brings_rows && (!route.gpu || route.wire == DType::f32),
      "attention, maxima and minima need the rows themselves, which on GPUs the "
      "strategies pipelined, bulk and replicate bring, as fp32; use --strategy auto");
}

bool needs_peer_access(const Route& route) {
  return route.gpu && route.transport == DeviceTransport::vmm &&
         traits_of(route.strategy).reaches_peers;
}

}  // namespace plait
