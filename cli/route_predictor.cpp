#include "cli/route_predictor.h"

#include <fmt/core.h>

#include <utility>

#include "plait/base/gpu.h"
#include "plait/graph/statistics.h"
#include "plait/machine/kept_machine.h"
#include "plait/machine/machine.h"
#include "plait/machine/machine_of_rates.h"
#include "plait/plan/cost_model.h"
#include "plait/plan/cpu_cost_model.h"

namespace plait::cli {

void plan_by_measured_machine(const Session& session) {
  if (gpu_count() == 0) return;
  const MeasuredMachine measured = measured_machine({current_gpu_name(), session.gpus});
  if (!measured.note.empty() && !session.quiet)
    fmt::print(stderr, "plait: warning: {}\n", measured.note);
  if (measured.profile) use_machine(*measured.profile);
}

RoutePredictor::RoutePredictor(const AnyCsr& graph, int ranks, const Session& session) {
  if (session.gpus > 0) return;
  KeptMachine kept = read_kept_machine(kept_machines_folder(), MachineKey::of_cpu(ranks));
  rates_ = std::move(kept.rates);
  if (!kept.note.empty() && !session.quiet) fmt::print(stderr, "plait: warning: {}\n", kept.note);
  if (!rates_.empty()) far_share_ = far_share(averaged_edge_span(graph), vertex_count(graph));
}

std::optional<double> RoutePredictor::milliseconds(const Route& route,
                                                   const PartitionQuality& quality,
                                                   std::uint64_t width) const {
  const std::optional<double> seconds =
      route.gpu ? predict_aggregation(route, quality, width)
                : predict_cpu_aggregation(route.strategy, quality, {width, far_share_}, rates_);
  return seconds ? std::optional(1e3 * *seconds) : std::nullopt;
}

}  // namespace plait::cli
