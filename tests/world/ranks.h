// Tests of several processes: the test program starts itself again, as launcher and as ranks.
//
// A rank program is a function with a name. Job starts one on several ranks, reads their lines on
// stdout, hurts them on demand, and returns the exit code and the lines on stderr.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "plait/world/world.h"

namespace plait::test {

// Time that only a hang needs, however busy the machine is. Tests that are about time set their
// own.
inline constexpr std::chrono::seconds kHangs{280};
// Seconds in which a killed rank ends the others, on a busy machine too.
#ifdef PLAIT_SANITIZED  // processes begin and end several times slower
inline constexpr double kMostSeconds = 15;
#else
inline constexpr double kMostSeconds = 5;
#endif
// Milliseconds after which a silent rank is lost, and the launcher ends ranks that outlive a lost
// one.
inline constexpr int kTimeoutMs = static_cast<int>(kMostSeconds * 400);
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
// Milliseconds after which a silent rank is lost, for jobs that lose none.
inline constexpr int kPatient = 120000;

// Adds a program that each rank of a joined world runs. Its errors are reported as the command line
// program would.
struct RankProgram {
  RankProgram(const std::string& name, std::function<void(World&)> body);
};
// Adds a program that gets no world.
struct PlainProgram {
  PlainProgram(const std::string& name, std::function<int()> body);
};

// For rank programs: prints a whole line on stdout, for Job::await(). "ready" adds the process id.
void say(const std::string& line);
void say_ready(const World& world);
// For rank programs: throws Error with the text unless the condition holds.
void expect(bool condition, const std::string& text);

using Environment = std::map<std::string, std::string>;

struct Outcome {
  int code = -1;                    // of the launcher; -N after signal N
  std::vector<std::string> errors;  // the lines of stderr
  std::string all_errors() const;
};

// A process of the test program with stdout and stderr in pipes.
class Process {
 public:
  explicit Process(const Environment& environment);
  ~Process();  // kills it if it still runs
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;

  pid_t id() const { return id_; }
  // Reads stdout up to a line that begins so, and returns the rest of the line. Fails the test
  // after kHangs.
  std::string await(const std::string& beginning);
  // Reads stderr up to the end of its line `count`. Fails the test after kHangs.
  void await_errors(int count);
  // Reads the rest; fails the test and kills after `limit`.
  Outcome wait(std::chrono::seconds limit = kHangs);

 private:
  bool read_some(std::chrono::milliseconds limit);
  pid_t id_ = 0;
  int pipes_[2] = {-1, -1};
  std::string text_[2];
};

struct JobOptions {
  std::string program;
  int ranks = 2;
  int timeout_ms = kTimeoutMs;
  Environment environment = {};
  // Prints it in GoogleTest's messages and names.
  friend void PrintTo(const JobOptions& options, std::ostream* out) {
    *out << options.program << " on " << options.ranks << " ranks";
  }
};

// Ranks under Plait's launcher.
class Job : public Process {
 public:
  explicit Job(const JobOptions& options);
  // Returns the process id of a rank that has said it is ready; throws Error if it does not say so.
  pid_t rank(int number);
  void await_ready(int ranks) {
    for (int number = 0; number < ranks; ++number) rank(number);
  }
};
Outcome run_job(const JobOptions& options);

// Returns the environment of one rank of a world without a launcher, in torchrun's words.
Environment rank_environment(const std::string& program, int rank, int size, int port,
                             int timeout_ms = kPatient);
// Runs ranks that take each other to be on so many hosts, and expects exit code 0 of all.
void run_on_hosts(const std::string& program, int ranks, int ranks_per_host = 1);
// Returns a port that was free a moment ago.
int free_port();
bool process_runs(pid_t process);

}  // namespace plait::test
