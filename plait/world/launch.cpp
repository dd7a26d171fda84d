// Plait's own launcher: N processes of this program on this host.
//
// Ranks are forked and go on where the launcher was, because a program of libtorch takes a quarter
// of a second to start anew. They are forked before the launcher starts a thread, so that none of
// them gets a lock that a thread held, and they learn the store's port through a pipe.
//
// The launcher keeps the rendezvous store, so that the loss of any rank, the first included, is the
// same case. It sees at once when a rank dies, and tells the others through the store.
#include "plait/world/launch.h"

#include <fcntl.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/file_system.h"
#include "plait/base/mapped_range.h"
#include "plait/world/descriptors.h"
#include "plait/world/loss.h"
#include "plait/world/rank_limits.h"
#include "plait/world/rendezvous.h"

namespace plait {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Time between asking a rank to end and killing it.
constexpr milliseconds kTermToKill{1000};
// The launcher takes twice as long as a rank to tell two wishes apart: a second wish that it passes
// on is then a second one for a rank too, even a little delayed.
constexpr milliseconds kTwoWishes = 2 * kOneWish;
constexpr steady_clock::time_point kNever = steady_clock::time_point::max();

// Takes SIGINT, SIGTERM, SIGHUP and SIGCHLD while it lives. It uses handlers, which run in whatever
// thread the signal comes to; the store has a thread of its own. If this process was started to
// ignore a wish to stop, as scripts start programs in the background, it and its ranks go on
// ignoring it.
class Signals {
 public:
  Signals() {
    int ends[2];
    const bool made = ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;
    require(made, "a pipe cannot be made: {}", reason(errno));
    read_end_ = ends[0];
    write_end_ = ends[1];
    struct sigaction action {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kTaken.size(); ++i) {
      ::sigaction(kTaken[i], nullptr, &old_[i]);
      if (kTaken[i] == SIGCHLD || old_[i].sa_handler != SIG_IGN)
        ::sigaction(kTaken[i], &action, nullptr);
    }
  }
  ~Signals() {
    give_back();
    ::close(read_end_);
    ::close(write_end_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Blocks these signals in this thread and a child that it forks; returns the mask before.
  static sigset_t block() {
    sigset_t taken, before;
    sigemptyset(&taken);
    for (const int number : kTaken) sigaddset(&taken, number);
    pthread_sigmask(SIG_BLOCK, &taken, &before);
    return before;
  }
  // For a forked rank: each signal that is not ignored gets its default action, as in a program
  // that has just been started.
  void leave() {
    for (auto& old : old_)
      if (old.sa_handler != SIG_IGN) old.sa_handler = SIG_DFL;
    give_back();
  }
  // Returns the signals that have come within the time given.
  std::vector<int> wait(milliseconds limit) const {
    pollfd ready{read_end_, POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(limit.count()));
    std::vector<int> numbers;
    unsigned char number = 0;
    while (::read(read_end_, &number, 1) == 1) numbers.push_back(number);
    return numbers;
  }

 private:
  static constexpr std::array kTaken{SIGINT, SIGTERM, SIGHUP, SIGCHLD};

  void give_back() const {
    for (std::size_t i = 0; i < kTaken.size(); ++i) ::sigaction(kTaken[i], &old_[i], nullptr);
  }

  // A full pipe holds signals enough to wake the reader.
  static void note(int signal) {
    const int error = errno;
    const auto number = static_cast<unsigned char>(signal);
    static_cast<void>(!::write(write_end_, &number, 1));
    errno = error;
  }

  static inline volatile sig_atomic_t write_end_ = -1;
  int read_end_ = -1;
  std::array<struct sigaction, kTaken.size()> old_{};
};

// Brings the store's port to the ranks.
class PortPipe {
 public:
  PortPipe() {
    const bool made = ::pipe2(ends_, O_CLOEXEC) == 0;
    require(made, "a pipe cannot be made: {}", reason(errno));
  }
  ~PortPipe() {
    for (const int end : ends_) ::close(end);
  }
  PortPipe(const PortPipe&) = delete;
  PortPipe& operator=(const PortPipe&) = delete;

  // Writes of so few bytes arrive whole, so that each rank may take the next.
  void send(int port) const {
    const bool sent = ::write(ends_[1], &port, sizeof port) == sizeof port;
    require(sent, "a rank cannot be told the port: {}", std::strerror(errno));
  }
  // For a rank, whose launcher takes it with it when it ends.
  int receive() const {
    int port = 0;
    while (::read(ends_[0], &port, sizeof port) != sizeof port)
      if (errno != EINTR) ::_exit(static_cast<int>(ExitCode::failed));
    return port;
  }

 private:
  int ends_[2];
};

void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), /*overwrite=*/1);
}

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options) {}
  ~Launcher();
  // Returns whether this process is the launcher, and not one of the ranks that it has forked.
  bool start();
  // Waits for the ranks, and returns the exit code for the program.
  int run();

 private:
  struct Rank {
    pid_t process = 0;  // 0 once it has ended
    bool stopped = false;
  };

  void become_rank(int rank, pid_t launcher, const PortPipe& port);
  void interrupt(int number);
  void observe(int rank);
  void ended(int rank, int status);
  bool ended_by_interrupt(int status) const;
  void tell(int rank, const std::string& reason);
  void fail(int code);
  void enforce_deadlines();
  void signal_all(int number) const;
  milliseconds next_look() const;
  bool running() const {
    return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.process != 0; });
  }
  bool asked() const { return asked_at_ || hung_up_; }  // to stop

  const LaunchOptions options_;
  Signals signals_;
  const Secret secret_ = make_secret();
  std::unique_ptr<Rendezvous> store_;
  std::vector<Rank> ranks_;
  int exit_code_ = 0;
  std::optional<steady_clock::time_point> asked_at_;  // to stop, by a first SIGINT or SIGTERM
  bool hung_up_ = false;                              // SIGHUP asked to stop
  bool interrupted_ = false;     // the user has asked this process or a rank to stop
  bool somebody_spoke_ = false;  // a rank ended with a line of its own
  std::string killed_;           // the line for a rank that could not speak
  bool failed_ = false;          // a rank has, so that the others have to end
  steady_clock::time_point terminate_at_ = kNever, kill_at_ = kNever;
};

Launcher::~Launcher() {
  signal_all(SIGKILL);
  for (const auto& rank : ranks_)
    if (rank.process != 0) ::waitpid(rank.process, nullptr, 0);
}

bool Launcher::start() {
  const PortPipe port;
  const pid_t launcher = ::getpid();
  tell_bus_errors_once();
  std::fflush(nullptr);  // what is buffered would be written by every process
  ranks_.resize(static_cast<std::size_t>(options_.ranks));
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const sigset_t mask = Signals::block();  // signals that come meanwhile are for the rank
    const pid_t process = ::fork();
    const int error = errno;
    if (process == 0) {
      signals_.leave();
      pthread_sigmask(SIG_SETMASK, &mask, nullptr);
      ranks_.clear();
      become_rank(rank, launcher, port);
      return false;
    }
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    require(
        process > 0,
        "rank {} cannot be started: {}; raise the limits on processes (ulimit -u) and memory of "
        "this user or container, or start fewer",
        rank, reason(error));
    ranks_[static_cast<std::size_t>(rank)].process = process;
  }
  store_ = Rendezvous::serve({.host = "127.0.0.1", .prefix = "plait", .secret = secret_});
  prepare_loss(*store_);
  for (int rank = 0; rank < options_.ranks; ++rank) port.send(store_->port());
  return true;
}

void Launcher::become_rank(int rank, pid_t launcher, const PortPipe& port) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);  // it died before the line above
  ::prctl(PR_SET_NAME, fmt::format("plait rank {}", rank).c_str());
  if (rank != 0) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);
    ::close(null);
  }
  set_variable("PLAIT_RANK", std::to_string(rank));
  set_variable("PLAIT_WORLD_SIZE", std::to_string(options_.ranks));
  set_variable("PLAIT_MASTER_ADDR", "127.0.0.1");
  set_variable("PLAIT_TIMEOUT_MS", std::to_string(options_.timeout.count()));
  if (options_.work_timeout)
    set_variable("PLAIT_GPU_TIMEOUT_MS", std::to_string(options_.work_timeout->count()));
  set_variable("PLAIT_SECRET", to_text(secret_));
  if (::getenv("OMP_NUM_THREADS") == nullptr) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const int threads = std::max(1, cores / options_.ranks);
    set_variable("OMP_NUM_THREADS", std::to_string(threads));  // for libraries that ask later
    omp_set_num_threads(threads);  // of this thread, which begins all work on the CPU
  }
  set_variable("PLAIT_MASTER_PORT", std::to_string(port.receive()));
}

int Launcher::run() {
  while (running()) {
    for (const int number : signals_.wait(next_look()))
      if (number != SIGCHLD) interrupt(number);
    for (int rank = 0; rank < options_.ranks; ++rank) observe(rank);
    enforce_deadlines();
  }
  if (!killed_.empty() && !somebody_spoke_ && !interrupted_) throw Error(killed_);
  require<Interrupted>(!interrupted_ || somebody_spoke_, "interrupted");
  return interrupted_ ? static_cast<int>(ExitCode::interrupted) : exit_code_;
}

// The first signal is passed on, and ranks end in their own time: an epoch may take hours. Stopped
// ranks are continued, or they would never heed it. The second signal ends all at once. SIGHUP does
// not count: a closed terminal and its shell each send one, and a SIGTERM may follow when the
// session ends.
void Launcher::interrupt(int number) {
  const auto now = steady_clock::now();
  interrupted_ = true;
  if (number == SIGHUP) {
    if (std::exchange(hung_up_, true)) return;
  } else if (!asked_at_) {
    asked_at_ = now;
  } else if (now - *asked_at_ >= kTwoWishes) {
    kill_at_ = std::min(kill_at_, now + kTermToKill);
  } else {
    return;
  }
  signal_all(number);
  signal_all(SIGCONT);
}

void Launcher::observe(int rank) {
  auto& one = ranks_[static_cast<std::size_t>(rank)];
  int status = 0;
  while (one.process != 0 &&
         ::waitpid(one.process, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
      one.stopped = WIFSTOPPED(status);
      continue;
    }
    one.process = 0;
    ended(rank, status);
  }
}

void Launcher::ended(int rank, int status) {
  const bool by_interrupt = ended_by_interrupt(status);
  // Ctrl-C reaches the ranks first at times, and a signal of another program may reach one alone.
  if (by_interrupt && !asked()) interrupt(SIGINT);
  // Rank 0 reports an interruption, unless the signal itself has ended it; any rank reports a
  // failure.
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && (rank == 0 || !by_interrupt))
    somebody_spoke_ = true;
  if (by_interrupt) return;  // the others end likewise, each in its time
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const auto reason = fmt::format("was killed by signal {} ({})", number, ::strsignal(number));
    if (!failed_) {
      killed_ = fmt::format("rank {} {}", rank, reason);
      tell(rank, reason);
    }
    fail(static_cast<int>(ExitCode::failed));
  } else if (WEXITSTATUS(status) != 0) {
    // A rank that could not read a file has printed a line, but cannot tell the store of it.
    if (bus_error_told()) store_->set(failure_key(rank), "=");
    if (!failed_) tell(rank, fmt::format("failed with exit code {}", WEXITSTATUS(status)));
    fail(WEXITSTATUS(status));
    // After a failure that a rank has reported, another rank may be the first to end.
    const auto lost = parse_loss(store_->get(kLostKey, milliseconds(1)).value_or(""));
    if (lost && lost->rank == rank && lost->own_failure() && !interrupted_)
      exit_code_ = WEXITSTATUS(status);
  } else if (!store_->get(fmt::format("left/{}", rank), milliseconds(1))) {
    tell(rank, "ended with exit code 0 before the others were done");
  }
}

bool Launcher::ended_by_interrupt(int status) const {
  if (WIFEXITED(status)) return WEXITSTATUS(status) == static_cast<int>(ExitCode::interrupted);
  const int number = WTERMSIG(status);
  return number == SIGINT || ((number == SIGTERM || number == SIGHUP) && asked());
}

void Launcher::tell(int rank, const std::string& reason) {
  if (options_.ranks > 1) announce_loss(*store_, {rank, reason, std::nullopt});
}

// After the first failure the others end by themselves. After the timeout they are made to.
void Launcher::fail(int code) {
  if (std::exchange(failed_, true)) return;
  exit_code_ = code;
  terminate_at_ = steady_clock::now() + options_.timeout;
  kill_at_ = std::min(kill_at_, terminate_at_ + kTermToKill);
}

void Launcher::enforce_deadlines() {
  for (const auto& rank : ranks_)
    if (failed_ && rank.process != 0 && rank.stopped)
      ::kill(rank.process, SIGKILL);  // it cannot end itself
  const auto now = steady_clock::now();
  if (now >= terminate_at_) {
    terminate_at_ = kNever;
    signal_all(SIGTERM);
  }
  if (now >= kill_at_) signal_all(SIGKILL);
}

void Launcher::signal_all(int number) const {
  for (const auto& rank : ranks_)
    if (rank.process != 0) ::kill(rank.process, number);
}

// Signals wake the launcher; only deadlines need a look at the clock.
milliseconds Launcher::next_look() const { return milliseconds(kill_at_ < kNever ? 50 : 60000); }

}  // namespace

std::optional<int> launch(const LaunchOptions& options) {
  require_room_for_ranks(options.ranks);
  require<UsageError>(options.timeout >= milliseconds(100),
                      "the timeout is {} ms; at least 100 ms are needed", options.timeout.count());
  require_sensible_environment();
  require_descriptors_of_launcher(options.ranks);
  Launcher launcher(options);
  if (!launcher.start()) return std::nullopt;
  return launcher.run();
}

}  // namespace plait
