// The progress bar: one line of stderr, rewritten in place.
#include "plait/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "plait/base/printable.h"

namespace plait {
namespace {

std::atomic<bool> enabled_for_program{true};

// Tells whether stderr is a terminal that understands "erase to the end of the line".
bool stderr_is_terminal() {
  const char* terminal = std::getenv("TERM");
  const std::string_view kind = terminal != nullptr ? terminal : "";
  return isatty(STDERR_FILENO) == 1 && !kind.empty() && kind != "dumb";
}

std::int64_t milliseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Prints in one call, so that lines of other threads do not come between.
void print_to_stderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

bool set_progress(bool enabled) { return enabled_for_program.exchange(enabled); }

Progress::Progress(std::string label, std::uint64_t total)
    : label_(printable(label)),
      total_(total),
      shown_(enabled_for_program && total > 0 && stderr_is_terminal()) {}

Progress::~Progress() {
  if (shown_) print_to_stderr("\r\x1b[K");
}

void Progress::advance(std::uint64_t amount) {
  done_.fetch_add(amount, std::memory_order_relaxed);
  if (!shown_) return;
  const std::int64_t now = milliseconds_now();
  std::int64_t next = next_draw_.load(std::memory_order_relaxed);
  // Several threads may find the bar due: the thread that moves the time draws it.
  if (now >= next && next_draw_.compare_exchange_strong(next, now + 100)) draw();
}

void Progress::draw() {
  constexpr std::uint64_t kCells = 30;
  const std::uint64_t done = std::min(done_.load(std::memory_order_relaxed), total_);
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const auto full = static_cast<std::uint64_t>(share * static_cast<double>(kCells));
  print_to_stderr(fmt::format("\r\x1b[K{} [{:#<{}}{:.<{}}] {:3.0f}%", label_, "", full, "",
                              kCells - full, share * 100));
}

}  // namespace plait
