#include "plait/plan/optimiser.h"

#include <fmt/format.h>

#include <algorithm>

#include "plait/base/error.h"

namespace plait {

std::string name_of(const TrialWay& way) {
  std::string name = fmt::format("strategy {}{}", to_string(way.strategy), changes_text(way.get));
  if (way.passes > 0) name += fmt::format(", {} pass{}", way.passes, way.passes == 1 ? "" : "es");
  return name;
}

std::vector<double> equal_shares(int passes) {
  std::vector<double> shares;
  for (int pass = 1; pass <= passes; ++pass)
    shares.push_back(static_cast<double>(pass) / static_cast<double>(passes));
  return shares;
}

double Trial::least() const {
  return seconds.empty() ? std::numeric_limits<double>::infinity() : std::ranges::min(seconds);
}

Optimiser::Optimiser(const std::vector<TrialWay>& ways) : finished_(ways.size() < 2) {
  for (const TrialWay& way : ways)
    trials_.push_back({.way = way, .seconds = {}, .set_up = {}, .left_out = {}});
}

std::size_t Optimiser::best() const {
  if (trials_.empty()) return 0;
  const auto least = std::ranges::min_element(trials_, {}, &Trial::least);
  if (trials_.front().least() < kBetter * least->least()) return 0;
  return static_cast<std::size_t>(least - trials_.begin());
}

void Optimiser::placed(double seconds, int warm_up) {
  trials_.at(wanted_).set_up = seconds;
  longest_set_up_ = std::max(longest_set_up_, seconds);
  warm_up_ = warm_up;
}

void Optimiser::refuse(const std::string& reason) {
  require(!finished_, "{}", reason);
  trials_.at(wanted_).left_out = reason;
  go_on();
}

void Optimiser::took(double seconds, int epochs_left) {
  if (finished_) return;
  epochs_left_ = epochs_left;
  Trial& trial = trials_.at(wanted_);
  if (++trial.epochs <= warm_up_) return;
  const double best_before = trials_.at(best()).least();
  trial.seconds.push_back(seconds);
  const bool enough = trial.seconds.size() >= static_cast<std::size_t>(kSamples);
  if (enough || seconds > kClearlyWorse * best_before) go_on();
}

// Wants the next way that is worth a trial, or ends the trials.
void Optimiser::go_on() {
  for (std::size_t next = wanted_ + 1; next < trials_.size(); ++next) {
    wanted_ = next;
    trials_[next].left_out = not_worthwhile();
    if (trials_[next].left_out.empty()) return;
  }
  finished_ = true;
  wanted_ = best();
}

// A trial costs two set-ups, of the way and of the best one after it, and epochs that may be
// slower. The next way may be as fast as the best one less kMostGain.
std::string Optimiser::not_worthwhile() const {
  const double epoch = trials_[best()].least();
  const int trial = warm_up_ + kSamples;
  const double cost = 2 * longest_set_up_ + (kClearlyWorse - 1) * trial * epoch;
  const double gain = kMostGain * std::max(0, epochs_left_ - trial) * epoch;
  if (gain > cost) return {};
  return fmt::format(
      "a trial costs up to {:.1f} ms, as setting up took {:.1f} ms, and could save at most {:.1f} "
      "ms in the {} epochs left",
      1e3 * cost, 1e3 * longest_set_up_, 1e3 * gain, epochs_left_);
}

}  // namespace plait
