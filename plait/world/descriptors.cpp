#include "plait/world/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "plait/base/file_system.h"
#include "plait/base/system_limits.h"

namespace plait {
namespace {

// Measured, and rounded up: descriptors that a process opens for any number of ranks, a rank for
// each other rank, a group besides its peers, and the store for each rank.
constexpr int kOfProcess = 8;
constexpr int kOfPeer = 1;
constexpr int kOfGroup = 12;
constexpr int kOfStoreClient = 4;
// Room for descriptors of GPUs, their libraries and a user's script, if the limit is raised.
constexpr rlim_t kOthers = 1024;

// Returns how many of `count` descriptors can be opened now, and sets errno if that is not all.
int free_descriptors(int count) {
  std::vector<int> opened;
  int error = 0;
  while (static_cast<int>(opened.size()) < count && error == 0) {
    const int number = ::open("/", O_PATH | O_CLOEXEC);
    number < 0 ? static_cast<void>(error = errno) : opened.push_back(number);
  }
  for (const int number : opened) ::close(number);
  errno = error;
  return static_cast<int>(opened.size());
}

std::string to_connect(int ranks) { return fmt::format("to connect {} ranks", ranks); }

// Raises this process's limit by `more` and kOthers, as far as it may.
void raise_limit(rlimit& limit, int more) {
  const rlim_t room = limit.rlim_max - limit.rlim_cur;
  limit.rlim_cur += std::min(room, static_cast<rlim_t>(more) + kOthers);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void hold_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)  // open() gives the lowest number
      static_cast<void>(::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

void require_descriptors(int count, const std::string& use) {
  int free = free_descriptors(count);
  if (free == count) return;
  rlimit limit{};
  if (errno == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
      limit.rlim_cur < limit.rlim_max) {
    raise_limit(limit, count - free);
    free = free_descriptors(count);
    if (free == count) return;
  }
  const int error = errno;
  require<SystemLimitError>(
      error != EMFILE,
      "too many open files: a process may open {} files and connections here, which leaves too few "
      "for the {} that are needed {}; raise the limit (ulimit -n)",
      limit.rlim_cur, count, use);
  throw SystemLimitError(
      fmt::format("of {} files and connections that are needed {}, only {} can be opened: {}",
                  count, use, free, reason(error)));
}

void require_descriptors_of_rank(int ranks, bool keeps_store) {
  const int of_rank = kOfPeer + (keeps_store ? kOfStoreClient : 0);
  require_descriptors(kOfProcess + kOfGroup + ranks * of_rank, to_connect(ranks));
}

void require_descriptors_of_group(int ranks) {
  // One rank may keep the store, to which each rank connects anew.
  require_descriptors(kOfGroup + 2 * ranks * kOfPeer, to_connect(ranks));
}

// The launcher's ranks have the same limit, and would fail one by one.
void require_descriptors_of_launcher(int ranks) {
  require_descriptors(kOfProcess + ranks * kOfStoreClient, to_connect(ranks));
}

}  // namespace plait
