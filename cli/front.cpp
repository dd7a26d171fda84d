// plait COMMAND [ARGS]: runs a command that needs no libtorch, whose start alone takes a quarter of
// a second; with all else this process becomes plait-ranks, which stands beside this file and has
// all commands.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "cli/program.h"
#include "plait/base/failure.h"
#include "plait/base/file_system.h"
#include "plait/base/memory.h"
#include "plait/base/system_limits.h"
#include "plait/world/launch.h"

namespace {

using namespace plait;

struct OwnCommand {
  std::string_view name;
  void (*add)(CLI::App&, cli::Session&);
};
constexpr OwnCommand kOwn[] = {
    {"info", cli::add_info},
    {"generate", cli::add_generate},
    {"convert", cli::add_convert},
    {"reorder", cli::add_reorder},
    {"partition", cli::add_partition},
    {"report", cli::add_report},
    {"--version", [](CLI::App&, cli::Session&) {}},
};

// Lets OpenMP's threads, as GNU's library has them, look for work a few thousand times before they
// sleep, about as long as waking them takes. Of themselves they look 300,000 times, for
// milliseconds, and keep cores from threads that prepare batches and from other programs. The
// library reads this when it is loaded.
void wait_briefly() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "5000", 0);
}

// Libraries of plait-ranks abort, or end with a line of their own, where the current folder has
// been removed, or where a limit on addresses leaves no room to load them. Both is found out here;
// the second costs another start of the program, where there is such a limit at all.
void require_loading(const std::string& program) {
  require(has_current_folder(), "the current folder has been removed; go to another one");
  const auto limit = limit_on_addresses();
  if (!limit) return;
  const pid_t trial = ::fork();
  require<SystemLimitError>(
      trial >= 0, "a process cannot be started: {}; raise the limit on processes (ulimit -u)",
      reason(errno));
  if (trial == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, number);
    ::execl(program.c_str(), program.c_str(), "--version", nullptr);
    ::_exit(0);  // become_ranks() will have the same error
  }
  int status = 0;
  while (::waitpid(trial, &status, 0) < 0 && errno == EINTR) {
  }
  require<DoesNotFitError>(
      status == 0,
      "the program's libraries do not fit into {} of addresses; raise the limit "
      "(ulimit -v)",
      format_bytes(*limit));
}

[[noreturn]] void become_ranks(char** argv) {
  wait_briefly();
  // The link leads to this file itself, by whatever name it was called.
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("plait-ranks");
  std::error_code none;
  require(!std::filesystem::equivalent(beside, "/proc/self/exe", none),
          "{}: is plait itself, not the program that plait needs beside itself", beside.string());
  require_loading(beside);
  ::execv(beside.c_str(), argv);
  throw Error(
      fmt::format("{}: cannot be started: {}; for this command, plait needs it beside itself",
                  beside.string(), std::strerror(errno)));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view word = argc > 1 ? argv[1] : "";
  const auto* const own = std::ranges::find(kOwn, word, &OwnCommand::name);
  // Ranks of a launcher tell each other of their failures, which takes more than is linked here.
  if (own == std::end(kOwn) || valid_world_from_environment()) become_ranks(argv);
  return cli::run_program(argc, argv, {own->add, report_failure});
} catch (const std::exception& error) {
  return report_failure(error);
}
