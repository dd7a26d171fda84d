// The one line on stderr and the exit code with which a program ends after an error.
#pragma once

#include <exception>
#include <string>

#include "plait/base/error.h"

namespace plait {

struct Failure {
  std::string text;
  ExitCode code = ExitCode::failed;
};

// Returns the text and the code of an Error; of other errors, the first line of their text.
Failure failure_of(const std::exception& error);

// Prints "plait: TEXT" on stderr, in one write, so that lines of several ranks do not mix.
void print_failure(const std::string& text);

// Prints the line of an error, and returns the exit code.
int report_failure(const std::exception& error);

}  // namespace plait
