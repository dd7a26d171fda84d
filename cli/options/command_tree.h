// The program's commands and their options, as CLI11 knows them, for output that covers all of
// them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace plait::cli {

enum class ArgumentKind { flag, words, file, other };

struct Argument {
  std::vector<std::string> names;  // "-o", "--out"; of a positional: "graph"
  std::string description;
  ArgumentKind kind = ArgumentKind::file;
  std::vector<std::string> words;  // that may be given
};

struct Command {
  std::string path;  // "generate dcsbm"; empty: the program
  std::string description;
  std::vector<Argument> options, positionals;
  std::vector<Command> subcommands;
};

Command command_tree(CLI::App& app);
// Returns whether the option names a file or folder.
bool takes_file(const CLI::Option& option);

}  // namespace plait::cli
