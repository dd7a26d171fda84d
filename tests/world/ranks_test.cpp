#include "tests/world/ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "plait/base/error.h"
#include "plait/world/launch.h"
#include "plait/world/report.h"

extern char** environ;

namespace plait::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::map<std::string, std::function<int()>>& programs() {
  static std::map<std::string, std::function<int()>> all;
  return all;
}

const std::vector<std::string> kArguments{"--gtest_filter=Ranks.DISABLED_Program",
                                          "--gtest_also_run_disabled_tests"};

// Returns the launcher's exit code; nothing in its ranks, and without a launcher.
std::optional<int> launcher_code() {
  const char* const ranks = std::getenv("PLAIT_TEST_LAUNCH");
  if (ranks == nullptr) return std::nullopt;
  LaunchOptions options;
  options.ranks = std::atoi(ranks);
  options.timeout = milliseconds(std::atoi(std::getenv("PLAIT_TEST_TIMEOUT_MS")));
  return launch(options);
}

// Runs in a test program that was started again: it is no test.
TEST(Ranks, DISABLED_Program) {
  int code = 1;
  try {
    const auto of_launcher = launcher_code();
    code = of_launcher ? *of_launcher : programs().at(std::getenv("PLAIT_TEST_PROGRAM"))();
  } catch (const std::exception& error) {
    code = report_error(error);
  }
  std::exit(code);
}

}  // namespace

RankProgram::RankProgram(const std::string& name, std::function<void(World&)> body) {
  programs()[name] = [body = std::move(body)] {
    const auto world = World::join(world_from_environment().value());
    body(*world);
    return 0;
  };
}

PlainProgram::PlainProgram(const std::string& name, std::function<int()> body) {
  programs()[name] = std::move(body);
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::abort();
}

void say_ready(const World& world) { say(fmt::format("ready {} {}", world.rank(), ::getpid())); }

void expect(bool condition, const std::string& text) { require(condition, "expected: {}", text); }

std::string Outcome::all_errors() const {
  std::string all;
  for (const auto& line : errors) all += line + "\n";
  return all;
}

Process::Process(const Environment& environment) {
  int out[2], errors[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(errors, O_CLOEXEC) != 0) std::abort();
  id_ = ::fork();
  if (id_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(errors[1], STDERR_FILENO);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    // These deal the tests out to programs, which would leave this one with nothing to do.
    for (const char* const name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) ::unsetenv(name);
    std::string self = "plait_test", filter = kArguments[0], disabled = kArguments[1];
    char* arguments[] = {self.data(), filter.data(), disabled.data(), nullptr};
    ::execve("/proc/self/exe", arguments, environ);
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(errors[1]);
  pipes_[0] = out[0];
  pipes_[1] = errors[0];
}

Process::Process(Process&& other) noexcept : id_(std::exchange(other.id_, 0)) {
  for (int i = 0; i < 2; ++i) {
    pipes_[i] = std::exchange(other.pipes_[i], -1);
    text_[i] = std::move(other.text_[i]);
  }
}

Process::~Process() {
  if (id_ > 0) {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  for (const int pipe : pipes_)
    if (pipe >= 0) ::close(pipe);
}

// Returns false once both pipes are closed.
bool Process::read_some(milliseconds limit) {
  pollfd ready[2] = {{pipes_[0], POLLIN, 0}, {pipes_[1], POLLIN, 0}};
  ::poll(ready, 2, static_cast<int>(limit.count()));
  for (int i = 0; i < 2; ++i) {
    if (ready[i].revents == 0) continue;
    char buffer[4096];
    const auto size = ::read(pipes_[i], buffer, sizeof buffer);
    if (size > 0)
      text_[i].append(buffer, static_cast<std::size_t>(size));
    else
      ::close(std::exchange(pipes_[i], -1));
  }
  return pipes_[0] >= 0 || pipes_[1] >= 0;
}

std::string Process::await(const std::string& beginning) {
  const auto end = steady_clock::now() + kHangs;
  for (;;) {
    std::istringstream lines(text_[0]);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(beginning) && !lines.eof()) return line.substr(beginning.size());
    if (!read_some(milliseconds(100)) || steady_clock::now() > end) break;
  }
  ADD_FAILURE() << "no line begins with '" << beginning << "'; stderr: " << text_[1];
  return "";
}

void Process::await_errors(int count) {
  const auto end = steady_clock::now() + kHangs;
  while (std::ranges::count(text_[1], '\n') < count)
    if (!read_some(milliseconds(100)) || steady_clock::now() > end) break;
  EXPECT_GE(std::ranges::count(text_[1], '\n'), count) << "stderr: " << text_[1];
}

Outcome Process::wait(std::chrono::seconds limit) {
  const auto end = steady_clock::now() + limit;
  while (read_some(milliseconds(100)) && steady_clock::now() < end) {
  }
  if (steady_clock::now() >= end) {
    ADD_FAILURE() << "the job did not end";
    ::kill(id_, SIGKILL);
  }
  int status = 0;
  ::waitpid(std::exchange(id_, 0), &status, 0);
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  std::istringstream lines(text_[1]);
  for (std::string line; std::getline(lines, line);) outcome.errors.push_back(line);
  return outcome;
}

namespace {

Environment job_environment(const JobOptions& options) {
  Environment all = options.environment;
  all["PLAIT_TEST_PROGRAM"] = options.program;
  all["PLAIT_TEST_LAUNCH"] = std::to_string(options.ranks);
  all["PLAIT_TEST_TIMEOUT_MS"] = std::to_string(options.timeout_ms);
  return all;
}

}  // namespace

Job::Job(const JobOptions& options) : Process(job_environment(options)) {}

pid_t Job::rank(int number) {
  const auto text = await(fmt::format("ready {} ", number));
  // kill() would take 0 for this process's whole group.
  require(!text.empty(), "rank {} has not said that it is ready", number);
  return std::stoi(text);
}

Outcome run_job(const JobOptions& options) { return Job(options).wait(); }

Environment rank_environment(const std::string& program, int rank, int size, int port,
                             int timeout_ms) {
  return {{"PLAIT_TEST_PROGRAM", program},       {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},  {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}, {"PLAIT_TIMEOUT_MS", std::to_string(timeout_ms)}};
}

void run_on_hosts(const std::string& program, int ranks, int ranks_per_host) {
  const int port = free_port();
  std::vector<Process> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    Environment environment = rank_environment(program, rank, ranks, port);
    environment["PLAIT_HOST_ID"] = fmt::format("host {}", rank / ranks_per_host);
    processes.emplace_back(environment);
  }
  for (Process& process : processes) {
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
  }
}

int free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(descriptor, generic, length) != 0 || ::getsockname(descriptor, generic, &length) != 0)
    std::abort();
  ::close(descriptor);
  return ntohs(address.sin_port);
}

// A zombie runs no more.
bool process_runs(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string id, name, state;
  file >> id >> name >> state;
  return !state.empty() && state != "Z" && state != "X";
}

}  // namespace plait::test
