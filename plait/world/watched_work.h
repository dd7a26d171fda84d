// Work of this process that waits for other ranks where World does not see it: on a GPU, or on a
// thread of its own.
#pragma once

#include <cstdint>

namespace plait {

// Work that the watch over ranks (liveness.h) looks at. The watch calls these functions from its
// own threads, so they must not wait, and must not take a lock that the main thread may hold
// (CUDA's while it records work).
class WatchedWork {
 public:
  // The state of the work.
  struct Progress {
    bool under_way = false;  // work was enqueued that has not ended
    // Changes whenever work ends, and again and again while it waits for a rank.
    std::uint64_t moved = 0;
    // The host waits for a GPU, which may have other work: it stands still only if none moves.
    bool of_host = false;
  };

  // Ends all waits, present and future ones, because a rank is lost or this rank has left.
  virtual void end_waits() = 0;
  // Returns the present state.
  virtual Progress progress() = 0;

 protected:
  ~WatchedWork() = default;
};

}  // namespace plait
