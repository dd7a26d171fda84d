// Where the time of a run goes: phases of one rank's work, which nest, with their calls, seconds
// and bytes, and their spans for a trace.
//
// A profile belongs to the thread that starts it, which is the one that leads a rank's work from
// phase to phase. Work that it hands to other threads counts for the phase in which it waits for
// them, and phases of other threads are not noted, so that times add up to the thread's own. The
// recorder stands apart from Phase (world/phase.h), which feeds it: phases are also entered by
// rooms above `world`, and by inner loops whose names no error message needs. Without a profile, a
// phase costs the reading of one pointer of the thread; phases are for work of microseconds and
// longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plait/base/trace.h"

namespace plait {

// All calls of a phase within the same outer phase.
struct PhaseTotal {
  std::string name;
  int outer = -1;  // index of the phase that it is part of; -1: of none
  std::uint64_t calls = 0;
  std::uint64_t ns = 0;     // with inner phases
  std::uint64_t bytes = 0;  // moved between ranks, without inner phases
};

// The time of one rank.
struct Profile {
  std::uint64_t ns = 0;            // from start_profile() to end_profile()
  std::vector<PhaseTotal> phases;  // an outer phase comes before its inner ones
  std::vector<TraceSpan> spans;    // in the order of their beginnings, on CLOCK_MONOTONIC
  std::uint64_t left_out = 0;      // spans that were too many; totals have all
};

// Write `ns` and `phases` as one line of text, to send between ranks, and read it. The latter
// throws Error for any other text.
std::string to_text(const Profile& profile);
Profile profile_of_text(std::string_view text);

struct ProfileOptions {
  bool spans = false;
  // Beyond so many spans only those of outermost phases are kept, up to twice as many.
  std::size_t most_spans = std::size_t{1} << 16;
};

// Begins a profile of this thread. A process that it forks goes on with a copy.
void start_profile(const ProfileOptions& options);
// Ends the profile and returns it. All phases have ended.
Profile end_profile();
// Tells whether phases of this thread are noted.
bool profiling();

// From now on, to the end of this thread's profile, `wait` is called where phases begin and end, so
// that asynchronous work counts for the phase that has enqueued it. Errors that it throws at an end
// are dropped: the next operation on the device reports them. Throws UsageError without a profile.
// It is no option of start_profile(), as a process that forks ranks has a profile before it may ask
// for a GPU.
void settle_phases_by(void (*wait)());

// Adds bytes that have crossed between ranks to the phase under way.
void count_moved(std::uint64_t bytes);

// A phase, from here to the end of the scope: const Timed timed("forward").
class Timed {
 public:
  explicit Timed(std::string_view name);
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  void* recorder_;  // null: not noted
  std::uint64_t begin_ = 0;
  std::size_t span_ = 0;
  int outer_ = -1;
};

// Returns the result of `work`, which runs in a phase of this name.
template <class Work>
decltype(auto) timed(std::string_view name, Work work) {
  const Timed phase(name);
  return work();
}

// While it lives, phases of this thread are not noted. For work whose parts have the names of other
// work, such as a rehearsal of training.
class ProfilePause {
 public:
  ProfilePause();
  ~ProfilePause();
  ProfilePause(const ProfilePause&) = delete;
  ProfilePause& operator=(const ProfilePause&) = delete;

 private:
  void* recorder_;
};

}  // namespace plait
