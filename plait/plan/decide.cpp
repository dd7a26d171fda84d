#include "plait/plan/decide.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plait/plan/cost_model.h"

namespace plait {
namespace {

using Way = std::pair<PartitionScheme, Strategy>;
using TimesByWidth = std::map<std::uint64_t, double>;

bool answers(const RouteQuestion& q, Strategy strategy, PartitionScheme partition) {
  if (!q.open_strategy && strategy != q.route.strategy) return false;
  if (!q.open_partition && partition != q.route.partition) return false;
  const StrategyTraits& traits = traits_of(strategy);
  const StrategyOnDevice& here = traits.on(q.route.gpu);
  return here.possible && (!q.rows || here.brings_rows) &&
         (!q.route.exact || !q.route.gpu || !traits.own_order) &&
         (q.route.wire == DType::f32 || traits.converts_rows);
}

double time_at(const TimesByWidth& times, std::uint64_t width) {
  const auto above = times.lower_bound(width);
  const auto scaled = [&](const auto& at) {
    return at.second * static_cast<double>(width) / static_cast<double>(at.first);
  };
  if (above == times.end()) return scaled(*times.rbegin());
  if (above->first == width) return above->second;
  if (above == times.begin()) return above->second;  // narrow rows cost their latency
  const auto below = std::prev(above);
  const double share =
      static_cast<double>(width - below->first) / static_cast<double>(above->first - below->first);
  return below->second + share * (above->second - below->second);
}

// Sorts the alternatives and takes the first, unless the standard way takes less than `worthwhile`
// times as long.
Decision with_best(Decision decision, double worthwhile) {
  if (decision.alternatives.empty()) return decision;
  std::ranges::stable_sort(decision.alternatives, {}, &Alternative::ms);
  const Alternative& best = decision.alternatives.front();
  const auto standard = std::ranges::find_if(decision.alternatives, [&](const Alternative& a) {
    return a.strategy == decision.route.strategy && a.partition == decision.route.partition;
  });
  if (standard != decision.alternatives.end() && standard->ms < worthwhile * best.ms)
    return decision;
  decision.route.strategy = best.strategy;
  decision.route.partition = best.partition;
  return decision;
}

}  // namespace

Decision decide(const RouteQuestion& question, const std::vector<MeasuredRoute>& measured) {
  std::map<Way, TimesByWidth> ways;
  for (const MeasuredRoute& one : measured)
    if (one.transport == question.route.transport && answers(question, one.strategy, one.partition))
      ways[{one.partition, one.strategy}][one.width] = one.ms;
  Decision decision{.route = question.route, .alternatives = {}};
  for (const auto& [way, times] : ways) {
    double ms = 0;
    for (const std::uint64_t width : question.widths) ms += time_at(times, width);
    decision.alternatives.push_back({way.second, way.first, ms});
  }
  return with_best(std::move(decision), kWorthwhile);
}

Decision predict_best(const RouteQuestion& question, const PartitionQuality& quality,
                      const std::function<bool(const Route&)>& fits,
                      const MachineProfile& profile) {
  Decision decision{.route = question.route, .alternatives = {}};
  // Replicate moves all rows, and get one per edge. Bulk takes less time than these two for a halo
  // of less than a megabyte, but its steps cannot be recorded (machine.h), which costs more.
  for (const Strategy strategy : {Strategy::pipelined, Strategy::partial}) {
    if (!question.route.gpu || !answers(question, strategy, question.route.partition)) continue;
    Route route = question.route;
    route.strategy = strategy;
    double ms = 0;
    for (const std::uint64_t width : question.widths)
      ms += 1e3 * predict_aggregation(route, quality, width, profile).value();
    decision.alternatives.push_back({strategy, route.partition, ms});
  }
  const Decision best = with_best(decision, kWorthwhilePrediction);
  const bool is_standard = best.route.strategy == question.route.strategy;
  return is_standard || fits(best.route) ? best : Decision{question.route, best.alternatives};
}

}  // namespace plait
