// Errors where the system has none left of something that it counts; and threads, which are one
// such thing.
#pragma once

#include <cstdint>
#include <latch>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "plait/base/error.h"

namespace plait {

// The system has no thread or no open file left for this process.
struct SystemLimitError : Error {
  using Error::Error;
};

// Returns the bytes of addresses that this process may use at the most (ulimit -v), if there is
// such a limit.
std::optional<std::uint64_t> limit_on_addresses();

// Throws SystemLimitError for the errno with which a thread could not be started.
[[noreturn]] void refuse_thread(int error);
// Returns the text of that error.
std::string thread_failure(int error);

// Starts a thread that calls `work`. Throws SystemLimitError if it cannot.
template <class Thread = std::thread, class Work>
Thread start_thread(Work&& work) {
  try {
    return Thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    refuse_thread(error.code().value());
  }
}

// Threads that do nothing but exist, from the construction to the destruction of this object.
class HeldThreads {
 public:
  // Throws SystemLimitError if so many cannot be started.
  explicit HeldThreads(int count);
  ~HeldThreads() { finish(); }
  HeldThreads(const HeldThreads&) = delete;
  HeldThreads& operator=(const HeldThreads&) = delete;

 private:
  void finish();

  std::latch end_{1};
  std::vector<std::thread> started_;
};

// Throws SystemLimitError unless `count` threads can be started now: starts them, and ends them.
// OpenMP's libraries end the process with a line of their own where a thread cannot be started, so
// it is tried before.
inline void require_threads(int count) { const HeldThreads held(count); }

}  // namespace plait
