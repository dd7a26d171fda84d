// A progress bar on stderr. It is shown only when stderr is a terminal, and not after --quiet.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace plait {

// Acts on the whole program: no bar is drawn after set_progress(false). Returns the earlier
// setting.
bool set_progress(bool enabled);

// A bar on the last line of the terminal.
class Progress {
 public:
  // `total` is in any unit; `label` has a few words. Draws nothing if bars are disabled or stderr
  // is not a terminal.
  Progress(std::string label, std::uint64_t total);
  ~Progress();  // clears the line
  // Adds to the work that is done. Any thread may call it; it redraws at most ten times a second.
  void advance(std::uint64_t amount);

 private:
  void draw();
  std::string label_;
  std::uint64_t total_;
  bool shown_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::int64_t> next_draw_{0};
};

}  // namespace plait
