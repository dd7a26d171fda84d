// Waits of the host for its own GPU, which others would wait for without end.
#pragma once

#include <functional>

#include "plait/world/world.h"

namespace plait {

// Returns once `done()`, which must not wait, returns true. Until then the watch over ranks takes
// this rank for one whose work does not move on (WatchedWork): it is lost after the work timeout.
// Throws LostRankError for that, or once another rank is lost.
void watched_wait(World& world, const std::function<bool()>& done);

// Calls `wait`, which ends once the GPU has ended its work: a driver's own wait, which answers
// sooner than repeated questions. The watch looks on as above. Nothing ends `wait` itself if this
// rank is lost, so the watch ends the process then (liveness.h).
void watch_while(World& world, const std::function<void()>& wait);

}  // namespace plait
