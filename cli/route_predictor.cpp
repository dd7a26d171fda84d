#include "cli/route_predictor.h"

#include "plait/graph/statistics.h"
#include "plait/plan/cost_model.h"
#include "plait/plan/cpu_cost_model.h"
#include "plait/plan/kept_machine.h"

namespace plait::cli {

RoutePredictor::RoutePredictor(const AnyCsr& graph, int ranks, bool gpus)
    : graph_(graph), gpus_(gpus) {
  if (!gpus) rates_ = read_kept_machine(kept_machines_folder(), MachineKey::of_cpu(ranks)).rates;
}

void RoutePredictor::look_at(const Partition& partition) {
  if (!predicts()) return;
  quality_ = measure_partition(graph_, partition);
  if (!gpus_) far_share_ = far_share(averaged_edge_span(graph_), partition.vertices());
}

std::optional<double> RoutePredictor::milliseconds(const Route& route, std::uint64_t width) const {
  if (!predicts()) return std::nullopt;
  const std::optional<double> seconds =
      gpus_ ? predict_aggregation(route, quality_, width)
            : predict_cpu_aggregation(route.strategy, quality_, {width, far_share_}, rates_);
  return seconds ? std::optional(1e3 * *seconds) : std::nullopt;
}

}  // namespace plait::cli
