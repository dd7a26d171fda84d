// This header declares the work that the program does before and after any command. The program is
// two executables: `plait` starts without libtorch (front.cpp), and `plait-ranks` has all commands
// (main.cpp).
#pragma once

#include <exception>
#include <functional>

#include "cli/cli.h"

namespace plait::cli {

// The number (errno) of the error that ended print_json()'s writing to stdout; 0: none. Streams do
// not keep it.
inline int output_error = 0;

// Adds all commands, in the order of --help.
void add_commands(CLI::App& app, Session& session);

// The differences between the executables.
struct Program {
  std::function<void(CLI::App&, Session&)> add_commands;
  int (*report)(const std::exception&);  // prints the line of an error, returns the exit code
};

// Returns the exit code of the command of the command line, whose failure it has told in one line
// on stderr.
int run_command(int argc, char** argv, const Program& program, Session& session);

// Runs the command of the command line, and turns every failure into one line on stderr and an exit
// code. Ends the process, or returns the exit code for main().
int run_program(int argc, char** argv, const Program& program);

}  // namespace plait::cli
