// Errors and the exit codes they turn into.
//
// Every failure a user can meet is an Error whose text is one line. The program prints
// "plait: TEXT" on stderr and leaves with `exit_code()`; a library user catches it.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace plait {

enum class ExitCode : int {
  right = 0,
  failed = 1,
  usage = 2,
  mismatch = 3,      // a validation that did not match
  does_not_fit = 4,  // refused before it was allocated
  interrupted = 130,
};

// A failure that a user can meet. `text` is one line.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text, ExitCode code = ExitCode::failed)
      : std::runtime_error(text), code_(code) {}
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

// The command line, or an argument of the library, asks for something that does not exist.
struct UsageError : Error {
  explicit UsageError(const std::string& text) : Error(text, ExitCode::usage) {}
};

// A result differs from its reference.
struct MismatchError : Error {
  explicit MismatchError(const std::string& text) : Error(text, ExitCode::mismatch) {}
};

// More memory would be needed than there is; nothing was allocated.
struct DoesNotFitError : Error {
  explicit DoesNotFitError(const std::string& text) : Error(text, ExitCode::does_not_fit) {}
};

// The user asked to stop.
struct Interrupted : Error {
  explicit Interrupted(const std::string& text) : Error(text, ExitCode::interrupted) {}
};

// A file has wrong content. The line names the file, the place in it, the problem with the allowed
// range, and the remedy: "x.mtx: line 7: row 9 is outside 1..5; correct the size line".
struct InputError : Error {
  InputError(const std::string& file, const std::string& place, const std::string& problem,
             const std::string& remedy)
      : Error(file + ": " + place + ": " + problem + "; " + remedy) {}
};

// A rank died, stopped or could not be reached.
struct LostRankError : Error {
  LostRankError(int rank, const std::string& text, bool own_failure = false)
      : Error(text), rank_(rank), own_failure_(own_failure) {}
  int rank() const { return rank_; }
  // Tells whether the rank ended by an error of its own, which it can report better.
  bool own_failure() const { return own_failure_; }

 private:
  int rank_;
  bool own_failure_;
};

// Throws E unless `condition` holds. The text is formatted only on failure.
template <class E = Error, class... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    throw E(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace plait
