#include "plait/base/system_limits.h"

#include <cerrno>
#include <latch>
#include <new>
#include <vector>

#include "plait/base/file_system.h"

namespace plait {

std::string thread_failure(int error) {
  return fmt::format(
      "a thread cannot be started: {}; raise the limit on processes (ulimit -u), on addresses "
      "(ulimit -v) or of this container, or set OMP_NUM_THREADS lower",
      reason(error));
}

void refuse_thread(int error) { throw SystemLimitError(thread_failure(error)); }

void require_threads(int count) {
  std::latch end(1);
  std::vector<std::thread> started;
  int failure = 0;
  try {
    while (static_cast<int>(started.size()) < count) started.emplace_back([&] { end.wait(); });
  } catch (const std::system_error& error) {
    failure = error.code().value();
  } catch (const std::bad_alloc&) {
    failure = ENOMEM;
  }
  end.count_down();
  for (std::thread& thread : started) thread.join();
  if (failure != 0) refuse_thread(failure);
}

}  // namespace plait
