// Work of this process that waits for other ranks where World does not see it: on a GPU.
#pragma once

#include <cstdint>

namespace plait {

// The watch over ranks (liveness.h) calls these functions from its own threads, so they must not
// wait, and must not call what the main thread may hold a lock of (CUDA while it records work).
class WatchedWork {
 public:
  struct Progress {
    bool under_way = false;   // work was enqueued that has not ended
    std::uint64_t moved = 0;  // another number whenever work ends, and while it waits for a rank
  };

  // Ends all waits, those under way and those to come. A rank is lost, or this rank has left.
  virtual void end_waits() = 0;
  virtual Progress progress() = 0;

 protected:
  ~WatchedWork() = default;
};

}  // namespace plait
