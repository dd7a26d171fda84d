#include "plait/plan/route.h"

#include "plait/base/error.h"
#include "plait/base/names.h"
#include "plait/base/setting.h"

namespace plait {
namespace {

constexpr Names<DType, 2> kWires{"type of rows on the wire", {"fp32", "bf16"}};

}  // namespace

DType parse_wire(std::string_view name) { return kWires.parse(name); }

void require_wire_used(const Route& route, int ranks) {
  require<UsageError>(route.wire == DType::f32 || ranks > 1,
                      "{} is for rows that cross between ranks, but there is one rank; add {} or "
                      "{}, or leave it out",
                      setting("wire", to_string(route.wire)), setting("ranks"), setting("gpus"));
}

Route resolved(Route route) {
  require<UsageError>(route.gpu || route.transport == DeviceTransport::vmm,
                      "{} works between GPUs; add {}",
                      setting("transport", to_string(route.transport)), setting("gpus"));
  if (route.strategy == Strategy::automatic)
    route.strategy = route.gpu ? Strategy::pipelined : Strategy::bulk;
  const StrategyTraits& traits = traits_of(route.strategy);
  require<UsageError>(traits.on(route.gpu).possible, "strategy {} needs GPUs; use {}, or {}",
                      traits.name, setting("gpus"), setting("strategy", "bulk"));
  require<UsageError>(route.wire == DType::f32 || traits.converts_rows,
                      "strategy {} moves rows as they are; use fp32 on the wire, or {}",
                      traits.name, to_string(route.gpu ? Strategy::pipelined : Strategy::bulk));
  require<UsageError>(route.wire == DType::f32 || !route.exact,
                      "rows that cross as {} give sums that depend on how the graph is cut; exact "
                      "sums need fp32",
                      to_string(route.wire));
  if (route.gets_on_gpus()) {
    require_in_range(route.get);
    require<UsageError>(!route.reads_by_nvshmem() || route.transport == DeviceTransport::nvshmem,
                        "{} reads memory of NVSHMEM alone; add {}", setting("read-with", "nvshmem"),
                        setting("transport", "nvshmem"));
  }
  if (!route.gpu || !route.exact) return route;
  require<UsageError>(!traits.own_order,
                      "strategy {} on GPUs sums in an order that depends on how the graph is cut; "
                      "with {} use pipelined, bulk or replicate",
                      traits.name, setting("exact"));
  return route;
}

void require_rows(const Route& route) {
  require<UsageError>(route.wire == DType::f32,
                      "attention, maxima and minima need the rows themselves, but {} on the wire "
                      "is for sums; use fp32 on the wire",
                      to_string(route.wire));
  require<UsageError>(route.placement().brings_rows,
                      "attention, maxima and minima need the rows themselves, which on GPUs the "
                      "strategies pipelined, bulk and replicate bring; use {}",
                      setting("strategy", "auto"));
}

bool needs_peer_access(const Route& route) {
  return route.gpu && route.transport == DeviceTransport::vmm &&
         traits_of(route.strategy).reaches_peers;
}

}  // namespace plait
