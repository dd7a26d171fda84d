#include "plait/plan/settings_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

using Cost = std::function<double(const GetTuning&)>;

std::vector<SettingsTrial> searched(const Cost& cost, std::uint64_t widest = 64) {
  return search_settings({}, widest, [&](const GetTuning& settings) {
    return SettingsTrial{settings, {cost(settings)}};
  });
}

GetTuning best_of(const std::vector<SettingsTrial>& trials) {
  return trials.at(fastest_settings(trials).at(0)).settings;
}

double steps_from(double value, double best) { return std::abs(std::log2(value / best)); }

TEST(SettingsSearch, FindsTheBestOfEachSettingOnEitherSide) {
  const std::vector<GetTuning> bests{{.ps = 64, .dist = 1, .wpb = 16, .dw = 32},
                                     {.ps = 1, .dist = 16, .wpb = 1, .dw = 1},
                                     {.ps = 512, .dist = 2, .wpb = 4, .dw = 8},
                                     {.ps = 16, .dist = 4, .wpb = 2, .dw = 4},
                                     {.ps = 16, .dist = 2, .wpb = 4, .dw = {}}};
  for (const GetTuning& best : bests) {
    // 16 lanes of 4 floats are those of 64 columns.
    const auto cost = [&](const GetTuning& t) {
      return 1 + steps_from(t.ps, best.ps) + steps_from(t.dist, best.dist) +
             steps_from(t.wpb, best.wpb) + steps_from(t.dw.value_or(16), best.dw.value_or(16));
    };
    const std::vector<SettingsTrial> trials = searched(cost);
    EXPECT_EQ(best_of(trials), best) << changes_text(best);
    EXPECT_EQ(trials.front().settings, GetTuning{});
    EXPECT_LE(trials.size(), 24u);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      require_in_range(trials[i].settings);
      for (std::size_t k = 0; k < i; ++k) EXPECT_NE(trials[i].settings, trials[k].settings);
    }
  }
}

TEST(SettingsSearch, TriesEachSettingOnBothSidesOfTheFirst) {
  std::vector<std::string> tried;
  for (const SettingsTrial& one : searched([](const GetTuning&) { return 1; }))
    tried.push_back(changes_text(one.settings));
  EXPECT_EQ(tried, (std::vector<std::string>{"", ", ps 32", ", ps 8", ", dist 4", ", dist 1",
                                             ", wpb 8", ", wpb 2", ", dw 32", ", dw 8"}));
}

TEST(SettingsSearch, StopsWhereAStepIsHardlyFaster) {
  const auto trials = searched([](const GetTuning& t) { return t.ps == 32 ? 0.985 : 1; });
  EXPECT_EQ(trials.at(2).settings.ps, 8u);  // back from 32, which is no better by kFasterSettings
  EXPECT_EQ(trials.back().settings.ps, 16u);
}

TEST(SettingsSearch, ComparesByAllWidths) {
  // ps 32 halves the time of the narrow rows, and ps 8 that of the wide ones by a tenth.
  const auto trials = search_settings({}, 256, [](const GetTuning& t) {
    return SettingsTrial{t, {t.ps == 32 ? 1.0 : 2, t.ps == 8 ? 90.0 : 100}};
  });
  EXPECT_EQ(trials.back().settings.ps, 32u);
  EXPECT_EQ(fastest_settings(trials), (std::vector<std::size_t>{1, 0}));  // ps 8 was never tried
}

TEST(SettingsSearch, LeavesOutSettingsThatHaveNoTime) {
  const auto some = search_settings({}, 64, [](const GetTuning& t) {
    if (t.ps < 16) return SettingsTrial{t, {}, "no memory"};
    return SettingsTrial{t, {t.ps == 16 ? 1.0 : 2}};
  });
  EXPECT_EQ(best_of(some).ps, 16u);
  EXPECT_TRUE(std::ranges::any_of(some, [](const auto& t) { return t.left_out == "no memory"; }));
  const auto none = search_settings({}, 64, [](const GetTuning& t) {
    return SettingsTrial{t, {}, "no memory"};
  });
  EXPECT_EQ(none.size(), 1u);
  EXPECT_TRUE(fastest_settings(none).empty());
}

TEST(SettingsSearch, KeepsSettingsThatItDoesNotSearch) {
  const GetTuning first{.ps = GetTuning::kWholeRow, .read_by = ReadBy::thread};
  const auto trials = search_settings(first, 4, [](const GetTuning& t) {
    return SettingsTrial{t, {1}};
  });
  for (const SettingsTrial& one : trials) {
    EXPECT_EQ(one.settings.ps, GetTuning::kWholeRow);
    EXPECT_EQ(one.settings.read_by, ReadBy::thread);
    require_in_range(one.settings);  // threads read rows with 4 lanes or more
  }
}

}  // namespace
}  // namespace plait
