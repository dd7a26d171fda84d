// A wait of the host for its own GPU, which others would wait for without end.
#pragma once

#include <functional>

#include "plait/world/world.h"

namespace plait {

// Returns once `done()`, which must not wait, returns true. Until then the watch over ranks takes
// this rank for one whose work does not move on (WatchedWork): it is lost after the work timeout.
// Throws LostRankError for that, or once another rank is lost.
void watched_wait(World& world, const std::function<bool()>& done);

}  // namespace plait
