// Errors where the system has none left of something that it counts; and threads, which are one
// such thing.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "plait/base/error.h"

namespace plait {

// The system has no thread or no open file left for this process.
struct SystemLimitError : Error {
  using Error::Error;
};

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

// Throws SystemLimitError unless `count` threads can be started now: starts them, and ends them.
// OpenMP's libraries end the process with a line of their own where a thread cannot be started, so
// it is tried before.
void require_threads(int count);

}  // namespace plait
