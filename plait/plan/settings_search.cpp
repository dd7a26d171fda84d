#include "plait/plan/settings_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

namespace plait {
namespace {

enum class Direction { up, down };

// Returns twice a setting or half of it; nothing outside of the range.
std::optional<std::uint32_t> stepped(std::uint64_t value, Direction direction, std::uint64_t least,
                                     std::uint64_t most) {
  const std::uint64_t next = direction == Direction::up ? 2 * value : value / 2;
  if (next < least || next > most) return std::nullopt;
  return static_cast<std::uint32_t>(next);
}

// Returns settings with one of them a step further, or nothing at the end of its range.
using Step = std::optional<GetTuning> (*)(GetTuning tuning, Direction direction,
                                          std::uint64_t widest);

template <std::uint32_t GetTuning::*kSetting, std::uint32_t kMost>
std::optional<GetTuning> number_stepped(GetTuning tuning, Direction direction,
                                        std::uint64_t /*widest*/) {
  const auto next = stepped(tuning.*kSetting, direction, 1, kMost);
  if (!next) return std::nullopt;
  tuning.*kSetting = *next;
  return tuning;
}

// By default a row has a lane for each 16 bytes of it (GetTuning::dw).
std::optional<GetTuning> workers_stepped(GetTuning tuning, Direction direction,
                                         std::uint64_t widest) {
  constexpr std::uint64_t kFloatsPerLane = 4, kLeast = GetTuning::kLeastLanes;
  const std::uint64_t by_width =
      std::clamp<std::uint64_t>(std::bit_ceil((widest + kFloatsPerLane - 1) / kFloatsPerLane),
                                kLeast, GetTuning::kMostWorkers);
  const bool by_warps = tuning.read_by == ReadBy::warp && tuning.read_with == ReadWith::addresses;
  const auto next = stepped(tuning.dw ? *tuning.dw : by_width, direction, by_warps ? 1 : kLeast,
                            GetTuning::kMostWorkers);
  if (!next) return std::nullopt;
  tuning.dw = *next;
  return tuning;
}

constexpr std::array<Step, 4> kSteps{number_stepped<&GetTuning::ps, GetTuning::kMostNeighbours>,
                                     number_stepped<&GetTuning::dist, GetTuning::kMostPerWarp>,
                                     number_stepped<&GetTuning::wpb, GetTuning::kMostWarps>,
                                     workers_stepped};

class Search {
 public:
  Search(const GetTuning& first, std::uint64_t widest, const MeasureSettings& measure)
      : measure_(measure), widest_(widest) {
    take(first);
  }

  std::vector<SettingsTrial> run() {
    if (trials_.front().ms.empty()) return trials_;
    for (const Step step : kSteps)
      if (!walk(step, Direction::up)) walk(step, Direction::down);
    return trials_;
  }

 private:
  // Goes on from the best settings as long as they become better, and tells whether they have.
  bool walk(Step step, Direction direction) {
    const std::size_t before = best_;
    for (;;) {
      const auto next = step(trials_[best_].settings, direction, widest_);
      if (!next || !take(*next)) return best_ != before;
    }
  }

  // Measures settings, and tells whether they are the best so far.
  bool take(const GetTuning& settings) {
    const auto same = [&](const SettingsTrial& one) { return one.settings == settings; };
    if (std::ranges::any_of(trials_, same)) return false;
    trials_.push_back(measure_(settings));
    const double found = cost(trials_.back());
    if (trials_.size() == 1 || kFasterSettings * found > cost(trials_[best_])) return false;
    best_ = trials_.size() - 1;
    return true;
  }

  double cost(const SettingsTrial& trial) const {
    if (trial.ms.empty()) return std::numeric_limits<double>::infinity();
    double sum = 0;
    for (std::size_t w = 0; w < trial.ms.size(); ++w) sum += trial.ms[w] / trials_.front().ms.at(w);
    return sum / static_cast<double>(trial.ms.size());
  }

  const MeasureSettings& measure_;
  const std::uint64_t widest_;
  std::vector<SettingsTrial> trials_;
  std::size_t best_ = 0;
};

}  // namespace

std::vector<SettingsTrial> search_settings(const GetTuning& first, std::uint64_t widest,
                                           const MeasureSettings& measure) {
  return Search(first, widest, measure).run();
}

std::vector<std::size_t> fastest_settings(const std::vector<SettingsTrial>& trials) {
  std::vector<std::size_t> fastest;
  if (trials.empty()) return fastest;
  for (std::size_t w = 0; w < trials.front().ms.size(); ++w) {
    std::size_t best = 0;
    for (std::size_t t = 1; t < trials.size(); ++t)
      if (!trials[t].ms.empty() && trials[t].ms[w] < trials[best].ms[w]) best = t;
    fastest.push_back(best);
  }
  return fastest;
}

}  // namespace plait
