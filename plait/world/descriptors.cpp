#include "plait/world/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plait/base/error.h"

namespace plait {
namespace {

// Measured, and rounded up: descriptors of a process for any number of ranks, of a rank for each
// other rank, of a channel besides its peers, and of the store for each rank.
constexpr int kOfProcess = 24;
constexpr int kOfPeer = 1;
constexpr int kOfChannel = 12;
constexpr int kOfStoreClient = 4;
// Room for descriptors of GPUs, their libraries and a user's script, if the limit is raised.
constexpr rlim_t kOthers = 1024;

void require_descriptors(int count, int ranks) {
  const auto wanted = static_cast<rlim_t>(count);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  require(limit.rlim_max >= wanted,
          "a process may open {} files and connections here, but with {} ranks it needs {}; raise "
          "the limit (ulimit -n)",
          limit.rlim_max, ranks, count);
  limit.rlim_cur = std::min(limit.rlim_max, wanted + kOthers);
  const bool raised = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  require(raised, "the limit on open files cannot be raised to {}; raise it (ulimit -n)", count);
}

}  // namespace

void hold_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)  // open() gives the lowest number
      static_cast<void>(::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

void require_descriptors_of_rank(int ranks, bool keeps_store, int channels) {
  const int of_rank = kOfPeer * (1 + channels) + (keeps_store ? kOfStoreClient : 0);
  require_descriptors(kOfProcess + kOfChannel * channels + ranks * of_rank, ranks);
}

// The launcher's ranks have the same limit, and would fail one by one.
void require_descriptors_of_launcher(int ranks) {
  require_descriptors(kOfProcess + ranks * kOfStoreClient, ranks);
}

}  // namespace plait
