#include "plait/plan/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "plait/plan/cost_model.h"

namespace plait {
namespace {

// A way must promise to be faster than the standard one by this factor to be chosen in its place:
// measurements vary, and predictions err by up to a seventh (cost_model.h). By the measured cases
// of tests/plan/regret_test.cpp, kWorthwhilePrediction may be 1.14 to 1.22: below, a small crawl
// takes 4% longer, above, a binary tree takes 22% longer. Predictions for the standard strategy on
// another partition err alike, so that less is asked of them.
constexpr double kWorthwhile = 1.03;
constexpr double kWorthwhilePrediction = 1.15;
constexpr double kWorthwhilePartition = 1.02;

using Counts = std::function<const PartitionQuality*(PartitionScheme)>;
using Fits = std::function<bool(const Route&)>;
using TimesByWidth = std::map<std::uint64_t, double>;

std::string way_name(Strategy strategy, PartitionScheme partition, const GetTuning& get) {
  return fmt::format("strategy {}, partition {}{}", to_string(strategy), to_string(partition),
                     changes_text(get));
}
std::string way_name(const Route& route) {
  return way_name(route.strategy, route.partition, route.gets_on_gpus() ? route.get : GetTuning{});
}

std::string line_of(const std::string& way, double ms) {
  return fmt::format("  {:<40}{:>12.3f} ms", way, ms);
}

// Tells whether the run can go a way, but for settings of strategy get.
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

// Sorts the alternatives, and takes the fastest that fits once the time of each but the standard
// way, which the choice has so far, is multiplied by margin(alternative).
template <class Margin>
void take_fastest(Choice& choice, const Margin& margin, const Fits& fits) {
  std::ranges::stable_sort(choice.alternatives, {}, &Alternative::ms);
  const Route standard = choice.route;
  const auto is_standard = [&](const Alternative& a) {
    return a.way.strategy == standard.strategy && a.partition == standard.partition &&
           a.way.get == GetTuning{};
  };
  std::vector<Alternative> ways = choice.alternatives;
  std::ranges::stable_sort(
      ways, {}, [&](const Alternative& a) { return is_standard(a) ? a.ms : margin(a) * a.ms; });
  for (const Alternative& way : ways) {
    if (is_standard(way)) return;
    Route route = standard;
    route.strategy = way.way.strategy, route.partition = way.partition;
    if (way.way.get != GetTuning{}) route.get = way.way.get;
    if (!fits(route)) continue;
    choice.route = route;
    return;
  }
}

void explain(Choice& choice, const std::string& why) {
  choice.reasons.push_back(
      fmt::format("{}: {}, for the widths of this run:", way_name(choice.route), why));
  for (const Alternative& a : choice.alternatives)
    choice.reasons.push_back(line_of(way_name(a.way.strategy, a.partition, a.way.get), a.ms));
}

using Ways = std::map<std::pair<PartitionScheme, TrialWay>, TimesByWidth>;

// Leaves the times at widths at which the standard way was measured, too, so that no way is
// compared with a guess. Returns false if there are none, but the standard way can be gone.
bool leave_comparable(const RouteQuestion& q, const Fits& fits, Ways& ways) {
  const auto found = ways.find({q.route.partition, {q.route.strategy}});
  if (found == ways.end()) return !fits(q.route);
  const TimesByWidth standard = found->second;
  for (auto& [way, times] : ways)
    std::erase_if(times, [&](const auto& at) { return !standard.contains(at.first); });
  std::erase_if(ways, [](const auto& way) { return way.second.empty(); });
  return true;
}

// Chooses by times of y = A x, and returns whether there were some.
bool by_aggregations(const RouteQuestion& q, const std::vector<MeasuredRoute>& kept,
                     const Fits& fits, Choice& choice) {
  Ways ways;
  for (const MeasuredRoute& one : kept)
    if (one.kind.model.empty() && one.kind.transport == q.route.transport &&
        one.kind.wire == q.route.wire && answers(q, one.way.strategy, one.partition) &&
        (one.way.get == GetTuning{} || (q.open_settings && q.route.gpu)))
      ways[{one.partition, one.way}][one.kind.widths.front()] = one.ms;
  if (ways.empty()) return false;
  if (!leave_comparable(q, fits, ways)) {
    choice.reasons.push_back(
        fmt::format("{}: plait tune has not measured it, but only other ways, none of which is "
                    "taken without a comparison",
                    way_name(q.route)));
    return false;
  }
  for (const auto& [way, times] : ways) {
    double ms = 0;
    for (const std::uint64_t width : q.widths) ms += time_at(times, width);
    choice.alternatives.push_back({way.second, way.first, ms});
  }
  choice.measured = true;
  take_fastest(
      choice, [](const Alternative&) { return kWorthwhile; }, [](const Route&) { return true; });
  explain(choice, "by the times that plait tune measured");
  if (choice.route.gets_on_gpus() && !q.open_settings && q.route.get != GetTuning{})
    choice.reasons.emplace_back(
        "settings of strategy get are as asked for; times are of the default ones");
  return true;
}

// Chooses by the trials of earlier trainings, and returns whether there were some.
bool by_trials(const RouteQuestion& q, const std::vector<MeasuredRoute>& kept, Choice& choice) {
  if (!q.open_strategy || q.model.empty()) return false;
  const RunKind kind = kind_of(q);
  const bool any_partition = q.route.gpu && q.open_partition;
  std::vector<PartitionScheme> met;  // on each, the way that stayed comes first
  const MeasuredRoute* best = nullptr;
  for (const MeasuredRoute& one : kept) {
    if (one.kind != kind || std::ranges::find(met, one.partition) != met.end()) continue;
    met.push_back(one.partition);
    if ((any_partition || one.partition == q.route.partition) &&
        answers(q, one.way.strategy, one.partition) && (best == nullptr || one.ms < best->ms))
      best = &one;
  }
  if (best == nullptr) return false;
  choice.route.strategy = best->way.strategy, choice.route.partition = best->partition;
  choice.passes = best->way.passes;
  choice.reasons.push_back(fmt::format(
      "{}, partition {}: by epochs that an earlier run tried, per step:", name_of(best->way),
      to_string(best->partition)));
  for (const MeasuredRoute& one : kept)
    if (one.kind == kind && one.partition == best->partition)
      choice.reasons.push_back(line_of(name_of(one.way), one.ms));
  return true;
}

// Takes the standard strategy in the place of one that was measured but has no memory now.
void take_what_fits(const RouteQuestion& q, const Fits& fits, Choice& choice) {
  const bool same = choice.route.strategy == q.route.strategy && choice.route.get == q.route.get;
  if (same || fits(choice.route)) return;
  choice.reasons.push_back(fmt::format("{} does not fit in memory: strategy {}",
                                       way_name(choice.route), to_string(q.route.strategy)));
  choice.route.strategy = q.route.strategy, choice.route.get = q.route.get;
  choice.passes = 0;
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

// Tells whether a quarter of the time of all sums repays the search for clusters. `own`: the counts
// of the standard partition, on which all sums of one time take so many seconds.
bool repays_clusters(const RouteQuestion& q, const PartitionQuality& own, double seconds) {
  // Clusters are found once to be counted, and again if they are taken.
  constexpr double kMostGain = 0.25, kSearches = 2, kEdgesPerSecond = 3e7;  // on 16 cores
  double edges = 0;
  for (const PartQuality& part : own.parts) edges += static_cast<double>(part.edges);
  return kMostGain * q.times * seconds > kSearches * edges / kEdgesPerSecond;
}

void by_prediction(const RouteQuestion& q, const Counts& counts, const Fits& fits,
                   const MachineProfile& profile, Choice& choice) {
  std::vector<Alternative>& ways = choice.alternatives;
  // Replicate moves all rows, and get one per edge. Bulk was the best way of none of the cases that
  // docs/performance.md tells of, and its steps cannot be recorded (machine.h).
  const auto add = [&](PartitionScheme scheme, const PartitionQuality& quality) {
    for (const Strategy strategy : {Strategy::pipelined, Strategy::partial})
      if (answers(q, strategy, scheme))
        ways.push_back({{strategy}, scheme, 1e3 * predicted(q, strategy, quality, profile)});
  };
  const bool some_are_measured = !choice.reasons.empty();
  const PartitionScheme own = q.route.partition;
  const PartitionQuality* const standard = counts(own);
  if (standard == nullptr) return;
  add(own, *standard);
  if (q.open_partition) {
    const double seconds = std::ranges::min_element(ways, {}, &Alternative::ms)->ms / 1e3;
    std::vector<PartitionScheme> others{PartitionScheme::edges, PartitionScheme::vertices};
    if (repays_clusters(q, *standard, seconds)) others.push_back(PartitionScheme::clusters);
    for (const PartitionScheme scheme : others)
      if (const PartitionQuality* const quality = scheme == own ? nullptr : counts(scheme))
        add(scheme, *quality);
  }
  bool too_large = false;
  const auto margin = [&](const Alternative& a) {
    return a.way.strategy != q.route.strategy ? kWorthwhilePrediction : kWorthwhilePartition;
  };
  take_fastest(choice, margin, [&](const Route& route) {
    const bool fit = fits(route);
    if (!fit)
      choice.reasons.push_back(way_name(route) + ": does not fit in the memory of the GPUs");
    too_large = too_large || !fit;
    return fit;
  });
  explain(choice, too_large           ? "takes less memory; predicted times"
                  : some_are_measured ? "by predicted times"
                                      : "by predicted times, as plait tune has measured no way "
                                        "that this run can go");
}

// Returns the ways that training tries on the partition of a route: the route's own first, then
// those of the possible strategies that the question allows. On GPUs: pipelined also with a pass
// more and a pass less than its schedule's at the widest rows, unless sums must be exact, and
// partial only where it is predicted to take less than kHopeful times as long as pipelined.
std::vector<TrialWay> trial_ways(const RouteQuestion& q, const Route& own, const Counts& counts,
                                 const MachineProfile& profile) {
  constexpr double kHopeful = 1.1;
  if (q.possible.empty() || q.widths.empty()) return {};
  const PartitionQuality* const quality = own.gpu ? counts(own.partition) : nullptr;
  const auto hopeless = [&](Strategy strategy) {
    // On GPUs get reads one row per edge, and takes many times as long (docs/performance.md).
    if (own.gpu && strategy == Strategy::get) return true;
    return quality != nullptr && strategy == Strategy::partial &&
           predicted(q, strategy, *quality, profile) >
               kHopeful * predicted(q, Strategy::pipelined, *quality, profile);
  };
  std::vector<TrialWay> ways{{own.strategy}};
  for (const Strategy strategy : q.possible) {
    if (!answers(q, strategy, own.partition) || hopeless(strategy)) continue;
    if (strategy != own.strategy) ways.push_back({strategy});
    if (quality == nullptr || strategy != Strategy::pipelined || own.exact) continue;
    const int passes = scheduled_passes(q.route, *quality, std::ranges::max(q.widths), profile);
    if (passes > 1) ways.push_back({strategy, passes - 1});
    ways.push_back({strategy, passes + 1});
  }
  return ways;
}

}  // namespace

bool has_open_part(const RouteQuestion& q) {
  return q.open_strategy || q.open_partition || (q.open_settings && q.route.gets_on_gpus());
}

RunKind kind_of(const RouteQuestion& q) {
  return {.model = q.model,
          .widths = q.widths,
          .transport = q.route.transport,
          .exact = q.route.exact,
          .wire = q.route.wire};
}

Choice choose(const RouteQuestion& q, const MeasuredRoutes& kept, const Counts& counts,
              const Fits& fits, const MachineProfile& profile) {
  Choice choice{.route = q.route, .note = kept.note};
  if (q.ranks == 1) {
    choice.reasons = {"one rank: nothing moves between ranks"};
    choice.untried = "one rank moves no rows";
  } else if (!has_open_part(q)) {
    choice.reasons = {way_name(q.route) + ": as asked for"};
  } else if (by_aggregations(q, kept.routes, fits, choice) || by_trials(q, kept.routes, choice)) {
    take_what_fits(q, fits, choice);
    choice.untried = choice.measured ? "plait tune has measured this graph"
                                     : "an earlier run has tried the ways of this one";
  } else {
    if (q.open_strategy && q.route.gpu)
      by_prediction(q, counts, fits, profile, choice);
    else if (choice.reasons.empty())
      choice.reasons = {way_name(q.route) +
                        (!q.open_strategy && !q.open_partition ? ": as asked for"
                         : q.route.wire == DType::f32
                             ? ": nothing was measured for this graph; see plait tune"
                             : ": plait tune measures no rows that cross as less than fp32")};
    if (q.open_strategy) choice.trials = trial_ways(q, choice.route, counts, profile);
    if (choice.trials.size() < 2)
      choice.untried = q.possible.empty() ? "this run moves no rows"
                                          : "this run can go no other way that is worth a trial";
  }
  return choice;
}

}  // namespace plait
