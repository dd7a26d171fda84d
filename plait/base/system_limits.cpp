#include "plait/base/system_limits.h"

#include <sys/resource.h>

#include <cerrno>
#include <new>

#include "plait/base/file_system.h"

namespace plait {

std::string thread_failure(int error) {
  return fmt::format(
      "a thread cannot be started: {}; raise the limit on processes (ulimit -u), on addresses "
      "(ulimit -v) or of this container, or set OMP_NUM_THREADS lower",
      reason(error));
}

std::optional<std::uint64_t> limit_on_addresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

void refuse_thread(int error) { throw SystemLimitError(thread_failure(error)); }

HeldThreads::HeldThreads(int count) {
  int failure = 0;
  try {
    while (static_cast<int>(started_.size()) < count) started_.emplace_back([&] { end_.wait(); });
  } catch (const std::system_error& error) {
    failure = error.code().value();
  } catch (const std::bad_alloc&) {
    failure = ENOMEM;
  }
  if (failure == 0) return;
  finish();
  refuse_thread(failure);
}

void HeldThreads::finish() {
  end_.count_down();
  for (std::thread& thread : started_) thread.join();
}

}  // namespace plait
