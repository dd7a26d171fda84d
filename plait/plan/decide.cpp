#include "plait/plan/decide.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plait/base/row_stride.h"
#include "plait/plan/cost_model.h"
#include "plait/plan/halo_schedule.h"

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

// Sorts the alternatives and takes the first, unless the standard way takes less than kWorthwhile
// times as long.
Decision with_best(Decision decision) {
  if (decision.alternatives.empty()) return decision;
  std::ranges::stable_sort(decision.alternatives, {}, &Alternative::ms);
  const Alternative& best = decision.alternatives.front();
  const auto standard = std::ranges::find_if(decision.alternatives, [&](const Alternative& a) {
    return a.strategy == decision.route.strategy && a.partition == decision.route.partition;
  });
  if (standard != decision.alternatives.end() && standard->ms < kWorthwhile * best.ms)
    return decision;
  decision.route.strategy = best.strategy;
  decision.route.partition = best.partition;
  return decision;
}

// Returns the passes of pipelined at the widest rows, on the rank that is brought most rows.
int scheduled_passes(const RouteQuestion& q, const PartitionQuality& quality,
                     const MachineProfile& profile) {
  if (quality.parts.empty() || q.widths.empty()) return 0;
  const PartQuality& part = *std::ranges::max_element(quality.parts, {}, &PartQuality::dense_rows);
  const std::uint64_t width = std::ranges::max(q.widths);
  const RankLoad load{.own = part.vertices,
                      .halo = part.dense_rows,
                      .local_edges = part.edges - part.remote_edges,
                      .remote_edges = part.remote_edges};
  const PassWidths bytes{.y_bytes = row_bytes(width), .wire_bytes = row_bytes(width, q.route.wire)};
  return static_cast<int>(halo_cuts(load, bytes, {}, profile.passes).size());
}

double predicted(const RouteQuestion& q, Strategy strategy, const PartitionQuality& quality,
                 const MachineProfile& profile) {
  Route route = q.route;
  route.strategy = strategy;
  double seconds = 0;
  for (const std::uint64_t width : q.widths)
    seconds += predict_aggregation(route, quality, width, profile).value_or(0);
  return seconds;
}

}  // namespace

TrainingKind training_kind(const RouteQuestion& q) {
  return {.model = q.model,
          .widths = q.widths,
          .partition = q.route.partition,
          .transport = q.route.transport,
          .exact = q.route.exact,
          .wire = q.route.wire};
}

std::optional<MeasuredEpoch> tried_best(const RouteQuestion& question,
                                        const std::vector<MeasuredEpoch>& measured) {
  if (!question.open_strategy) return std::nullopt;
  const bool any_partition = question.route.gpu && question.open_partition;
  std::vector<TrainingKind> met;  // of each kind the way that stayed comes first
  std::optional<MeasuredEpoch> best;
  for (const MeasuredEpoch& one : measured) {
    if (std::ranges::find(met, one.kind) != met.end()) continue;
    met.push_back(one.kind);
    TrainingKind wanted = training_kind(question);
    if (any_partition) wanted.partition = one.kind.partition;
    if (one.kind == wanted && answers(question, one.way.strategy, wanted.partition) &&
        (!best || one.ms < best->ms))
      best = one;
  }
  return best;
}

std::vector<TrialWay> trial_ways(const RouteQuestion& question,
                                 const std::vector<Strategy>& possible,
                                 const PartitionQuality* quality, const MachineProfile& profile) {
  const Strategy own = question.route.strategy;
  std::vector<TrialWay> ways{{own}};
  const bool gpu = question.route.gpu && quality != nullptr;
  for (const Strategy strategy : possible) {
    if (!answers(question, strategy, question.route.partition)) continue;
    // On GPUs get reads one row per edge, and takes many times as long (docs/performance.md).
    if (question.route.gpu && strategy == Strategy::get) continue;
    if (gpu && strategy == Strategy::partial &&
        predicted(question, strategy, *quality, profile) >
            kHopeful * predicted(question, Strategy::pipelined, *quality, profile))
      continue;
    if (strategy != own) ways.push_back({strategy});
    if (!gpu || strategy != Strategy::pipelined || question.route.exact) continue;
    const int passes = scheduled_passes(question, *quality, profile);
    if (passes > 1) ways.push_back({strategy, passes - 1});
    ways.push_back({strategy, passes + 1});
  }
  return ways;
}

Decision decide(const RouteQuestion& question, const std::vector<MeasuredRoute>& measured) {
  std::map<Way, TimesByWidth> ways;
  for (const MeasuredRoute& one : measured)
    if (question.route.wire == DType::f32 && one.transport == question.route.transport &&
        answers(question, one.strategy, one.partition))
      ways[{one.partition, one.strategy}][one.width] = one.ms;
  Decision decision{.route = question.route, .alternatives = {}};
  for (const auto& [way, times] : ways) {
    double ms = 0;
    for (const std::uint64_t width : question.widths) ms += time_at(times, width);
    decision.alternatives.push_back({way.second, way.first, ms});
  }
  return with_best(std::move(decision));
}

Decision predict_best(const RouteQuestion& question,
                      const std::vector<CountedPartition>& partitions,
                      const std::function<bool(const Route&)>& fits,
                      const MachineProfile& profile) {
  Decision decision{.route = question.route, .alternatives = {}};
  // Replicate moves all rows, and get one per edge. Bulk was the best way of none of the cases that
  // docs/performance.md tells of, and its steps cannot be recorded (machine.h).
  for (const CountedPartition& partition : partitions)
    for (const Strategy strategy : {Strategy::pipelined, Strategy::partial})
      if (question.route.gpu && answers(question, strategy, partition.scheme))
        decision.alternatives.push_back(
            {strategy, partition.scheme,
             1e3 * predicted(question, strategy, *partition.quality, profile)});
  std::ranges::stable_sort(decision.alternatives, {}, &Alternative::ms);
  // Returns a way's time with the margin that it must have over the standard way.
  const auto cautious = [&](const Alternative& a) {
    if (a.strategy != question.route.strategy) return kWorthwhilePrediction * a.ms;
    return (a.partition == question.route.partition ? 1 : kWorthwhilePartition) * a.ms;
  };
  std::vector<Alternative> by_caution = decision.alternatives;
  std::ranges::stable_sort(by_caution, {}, cautious);
  for (const Alternative& a : by_caution) {
    Route route = question.route;
    route.strategy = a.strategy, route.partition = a.partition;
    const bool standard =
        a.strategy == question.route.strategy && a.partition == question.route.partition;
    if (standard) break;
    if (!fits(route)) continue;
    decision.route = route;
    break;
  }
  return decision;
}

}  // namespace plait
