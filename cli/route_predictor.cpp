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

RoutePredictor::RoutePredictor(const AnyCsr& graph, int ranks, bool gpus)
    : graph_(graph), gpus_(gpus) {
  if (gpus) return;
  KeptMachine kept = read_kept_machine(kept_machines_folder(), MachineKey::of_cpu(ranks));
  rates_ = std::move(kept.rates), note_ = std::move(kept.note);
}

void RoutePredictor::look_at(const PartitionQuality& quality) {
  quality_ = quality;
  if (!gpus_ && !rates_.empty() && !far_share_)
    far_share_ = far_share(averaged_edge_span(graph_), vertex_count(graph_));
}

std::optional<double> RoutePredictor::milliseconds(const Route& route, std::uint64_t width) const {
  const std::optional<double> seconds =
      gpus_ ? predict_aggregation(route, quality_, width)
            : predict_cpu_aggregation(route.strategy, quality_, {width, far_share_.value_or(0)},
                                      rates_);
  return seconds ? std::optional(1e3 * *seconds) : std::nullopt;
}

}  // namespace plait::cli
