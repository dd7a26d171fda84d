// Searches for the fastest settings of strategy `get` on a graph. MGG's cross-iteration
// optimisation (Wang et al., OSDI 2023, section 6) begins with ps = dist = wpb = 1, raises ps until
// a step takes longer, then dist, then wpb. This search begins with any settings, doubles each of
// these in the same order as long as steps become faster, and halves it if doubling did not help.
// GNNAdvisor's dimension workers (dw) follow.
//
// The search is a function of the times that it is told: ranks that tell it the same times find the
// same settings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plait/plan/get_tuning.h"

namespace plait {

// Settings that were tried.
struct SettingsTrial {
  GetTuning settings;
  std::vector<double> ms;     // of a step, one per width; empty: they cannot be measured
  std::string left_out = {};  // why not; else empty
};

// Measures one set of settings, as often as the search asks for another.
using MeasureSettings = std::function<SettingsTrial(const GetTuning&)>;

// A set must be faster than the best one so far by this factor to take its place.
constexpr double kFasterSettings = 1.02;

// Returns the trials in the order in which they were made, each set once, `first` first. Sets are
// compared by the mean over the widths of their time beside that of the first set. `widest`: the
// greatest of the widths, in floats, by which dw begins. Returns the first trial alone if it has no
// time.
std::vector<SettingsTrial> search_settings(const GetTuning& first, std::uint64_t widest,
                                           const MeasureSettings& measure);

// Returns the number of the fastest trial, the first of equal ones, for each width.
std::vector<std::size_t> fastest_settings(const std::vector<SettingsTrial>& trials);

}  // namespace plait
