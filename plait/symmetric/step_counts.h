// The counts of one GPU's steps that the watch over ranks knows: the steps that were given to the
// GPU, and the steps that it has ended.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"

namespace plait {

// Tells whether `a` is ahead of `b`. Numbers of steps count modulo 2^32.
PLAIT_HOST_DEVICE inline bool is_ahead(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

// Steps that were recorded (CUDA graphs) are counted apart: whoever captured them may replay them
// without telling. The host cannot know how many such replays are still under way when it announces
// others, so the GPU adds an announcement up when it comes to it (replays_after()).
struct StepCounts {
  std::uint32_t direct_given = 0, direct_done = 0;
  std::uint32_t announcements_given = 0, announcements_done = 0;
  // The replays that will have ended after the announced ones that the GPU has come to.
  std::uint32_t replays_given = 0, replays_done = 0;

  // Tells whether steps that were given have not ended. Replays that nobody announced hide none of
  // the other steps.
  bool under_way() const {
    return is_ahead(direct_given, direct_done) ||
           is_ahead(announcements_given, announcements_done) ||
           is_ahead(replays_given, replays_done);
  }
};

// Returns StepCounts::replays_given when the GPU comes to the announcement of `steps` more replays.
// Replays that nobody announced have then ended and are in `done`: they were enqueued before.
PLAIT_HOST_DEVICE inline std::uint32_t replays_after(std::uint32_t given, std::uint32_t done,
                                                     std::uint32_t steps) {
  return (is_ahead(done, given) ? done : given) + steps;
}

}  // namespace plait
