#include "plait/plan/decide.h"

#include <algorithm>
#include <map>
#include <utility>

namespace plait {
namespace {

using Way = std::pair<PartitionScheme, Strategy>;
using TimesByWidth = std::map<std::uint64_t, double>;

bool answers(const RouteQuestion& q, const MeasuredRoute& measured) {
  if (!q.open_strategy && measured.strategy != q.route.strategy) return false;
  if (!q.open_partition && measured.partition != q.route.partition) return false;
  const StrategyTraits& traits = traits_of(measured.strategy);
  const StrategyOnDevice& here = traits.on(q.route.gpu);
  return measured.transport == q.route.transport && here.possible &&
         (!q.rows || here.brings_rows) && (!q.route.exact || !q.route.gpu || !traits.own_order) &&
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

}  // namespace

Decision decide(const RouteQuestion& question, const std::vector<MeasuredRoute>& measured) {
  std::map<Way, TimesByWidth> ways;
  for (const MeasuredRoute& one : measured)
    if (answers(question, one)) ways[{one.partition, one.strategy}][one.width] = one.ms;
  Decision decision{.route = question.route, .alternatives = {}};
  for (const auto& [way, times] : ways) {
    double ms = 0;
    for (const std::uint64_t width : question.widths) ms += time_at(times, width);
    decision.alternatives.push_back({way.second, way.first, ms});
  }
  if (decision.alternatives.empty()) return decision;
  std::ranges::stable_sort(decision.alternatives, {}, &Alternative::ms);
  const Alternative& best = decision.alternatives.front();
  const auto standard = std::ranges::find_if(decision.alternatives, [&](const Alternative& a) {
    return a.strategy == question.route.strategy && a.partition == question.route.partition;
  });
  if (standard != decision.alternatives.end() && standard->ms < kWorthwhile * best.ms)
    return decision;
  decision.route.strategy = best.strategy;
  decision.route.partition = best.partition;
  return decision;
}

}  // namespace plait
