// A text option without a list of words names a file, unless its type has another name.
#include "cli/options/command_tree.h"

namespace plait::cli {
namespace {

// Returns the words of a type name such as "TEXT:{a,b,c}", which show_words() and CLI::IsMember
// make.
std::vector<std::string> words_of_type(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

ArgumentKind kind_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() == 0) return ArgumentKind::flag;
  if (!words_of_type(type).empty()) return ArgumentKind::words;
  return type.starts_with("TEXT") ? ArgumentKind::file : ArgumentKind::other;
}

Argument argument_of(const CLI::Option& option) {
  Argument argument{.names = {}, .description = option.get_description(), .words = {}};
  for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  if (argument.names.empty()) argument.names.push_back(option.get_name());
  argument.words = words_of_type(option.get_type_name());
  argument.kind = kind_of(option);
  return argument;
}

Command command_of(CLI::App& app, const std::string& path) {
  Command command{.path = path, .description = app.get_description()};
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? command.positionals : command.options)
        .push_back(argument_of(*option));
  for (CLI::App* sub : app.get_subcommands({}))
    command.subcommands.push_back(
        command_of(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name()));
  return command;
}

}  // namespace

bool takes_file(const CLI::Option& option) { return kind_of(option) == ArgumentKind::file; }

Command command_tree(CLI::App& app) { return command_of(app, ""); }

}  // namespace plait::cli
