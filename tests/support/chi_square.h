// Pearson's chi-square test of draws. Draws are keyed, so results are the same in every run.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace plait::test {

// Right draws fail with this probability.
inline constexpr double kLeast = 1e-4;

using Outcome = std::vector<std::uint64_t>;
using Outcomes = std::vector<Outcome>;
using Chances = std::map<Outcome, double>;

// Returns the probability of a chi-square as great as `x`, by Wilson and Hilferty's cube root.
inline double tail(double x, double freedom) {
  const double s = 2 / (9 * freedom);
  return 0.5 * std::erfc((std::cbrt(x / freedom) - (1 - s)) / std::sqrt(2 * s));
}

// Returns how likely it is that outcomes with these chances differ as much from them. Outcomes
// without a chance must not come up.
inline double likelihood(const Outcomes& outcomes, const Chances& chances) {
  std::map<Outcome, double> counts;
  for (const Outcome& outcome : outcomes) {
    if (!chances.contains(outcome)) return 0;
    ++counts[outcome];
  }
  double x = 0;
  for (const auto& [outcome, chance] : chances) {
    const double expected = chance * static_cast<double>(outcomes.size());
    x += (counts[outcome] - expected) * (counts[outcome] - expected) / expected;
  }
  return tail(x, static_cast<double>(chances.size() - 1));
}

inline Chances equal_chances(const Outcomes& outcomes) {
  Chances chances;
  for (const Outcome& outcome : outcomes)
    chances[outcome] = 1 / static_cast<double>(outcomes.size());
  return chances;
}

}  // namespace plait::test
