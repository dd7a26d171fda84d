// What the watch over ranks knows of the steps of one GPU: those that were given to it, and those
// that it has ended.
#pragma once

#include <cstdint>

namespace plait {

// Numbers of steps, modulo 2^32. Steps that were recorded (CUDA graphs) are counted apart: whoever
// captured them may replay them without telling.
struct StepCounts {
  std::uint32_t direct_given = 0, direct_done = 0;
  std::uint32_t replays_given = 0, replays_done = 0;

  // Tells whether steps that were given have not ended. Replays that nobody announced hide none of
  // the other steps.
  bool under_way() const {
    return ahead(direct_given, direct_done) || ahead(replays_given, replays_done);
  }

 private:
  static bool ahead(std::uint32_t given, std::uint32_t done) {
    return static_cast<std::int32_t>(given - done) > 0;
  }
};

// Returns the number of announced replays after `steps` more: those that ran unannounced before
// are taken for announced, so that they hide none of these.
inline std::uint32_t replays_after(std::uint32_t given, std::uint32_t done, std::uint32_t steps) {
  return (static_cast<std::int32_t>(given - done) < 0 ? done : given) + steps;
}

}  // namespace plait
