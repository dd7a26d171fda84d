// plait completion SHELL: prints a script that completes commands, options and their values, made
// from the commands and options that the program accepts.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "cli/cli.h"
#include "cli/options/command_tree.h"

namespace plait::cli {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Returns the text in single quotes, in a form that POSIX shells and fish accept.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

template <class Visit>
void each_command(const Command& command, const Visit& visit) {
  visit(command);
  for (const Command& sub : command.subcommands) each_command(sub, visit);
}

bool is_long(const std::string& name) { return name.starts_with("--"); }

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

// --- bash ---

const char* bash_kind(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::words:
      return "words";
    case ArgumentKind::file:
      return "file";
    default:
      return "none";
  }
}

// The words that follow a command and are not options: a subcommand, or the first positional.
std::string bash_argument(const Command& command) {
  std::vector<std::string> names;
  for (const Command& sub : command.subcommands) names.push_back(last_word(sub.path));
  if (!names.empty()) return fmt::format("kind=words words='{}'", fmt::join(names, " "));
  if (command.positionals.empty()) return "kind=none";
  const Argument& argument = command.positionals.front();
  return fmt::format("kind={} words='{}'", bash_kind(argument), fmt::join(argument.words, " "));
}

std::string bash(const Command& program) {
  std::vector<std::string> paths;
  std::string values, arguments;
  each_command(program, [&](const Command& command) {
    if (!command.path.empty()) paths.push_back(quoted(" " + command.path));
    std::vector<std::string> options;
    for (const Argument& option : command.options)
      for (const std::string& name : option.names) {
        options.push_back(name);
        if (option.kind != ArgumentKind::flag)
          values +=
              fmt::format("    '{}{} {}') kind={} words='{}' ;;\n", command.path.empty() ? "" : " ",
                          command.path, name, bash_kind(option), fmt::join(option.words, " "));
      }
    arguments += fmt::format("      '{}{}') {} options='{}' ;;\n", command.path.empty() ? "" : " ",
                             command.path, bash_argument(command), fmt::join(options, " "));
  });
  return fmt::format(R"bash(# Completes plait in bash; made by: plait completion bash
_plait() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local path= kind= words= options= i
  # --option=value comes as three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${{COMP_WORDS[i]}}" in
      {}) path="$path ${{COMP_WORDS[i]}}" ;;
      *) break ;;
    esac
  done
  case "$path $previous" in
{}    *)
      case "$path" in
{}      esac
      [[ $current == -* ]] && kind=words words=$options ;;
  esac
  COMPREPLY=()
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
  esac
}}
complete -F _plait plait
)bash",
                     fmt::join(paths, "|"), values, arguments);
}

// --- zsh ---

std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::flag:
      return "";
    case ArgumentKind::words:
      return fmt::format(":value:({})", fmt::join(argument.words, " "));
    case ArgumentKind::other:
      return ":value: ";
    case ArgumentKind::file:
      return ":file:_files";
  }
  return "";
}

std::string zsh_function(const std::string& path) {
  return path.empty() ? "_plait" : "_plait_" + replaced(path, " ", "_");
}

std::string zsh_command(const Command& command) {
  std::string specs, calls;
  for (const Argument& option : command.options)
    for (const std::string& name : option.names)
      specs += " \\\n    " +
               quoted(fmt::format("{}{}[{}]{}", name,
                                  is_long(name) && option.kind != ArgumentKind::flag ? "=" : "",
                                  zsh_text(option.description), zsh_value(option)));
  if (command.subcommands.empty()) {
    for (const Argument& positional : command.positionals)
      specs += fmt::format(" \\\n    {}", quoted("*" + zsh_value(positional)));
    return fmt::format("{}() {{\n  _arguments{}\n}}\n", zsh_function(command.path), specs);
  }
  std::string names;
  for (const Command& sub : command.subcommands) {
    const std::string name = last_word(sub.path);
    names += fmt::format(" {}\\:\"{}\"", name, zsh_text(sub.description));
    calls += fmt::format("    {}) {} ;;\n", name, zsh_function(sub.path));
  }
  specs += fmt::format(" \\\n    {} '*::argument:->rest'", quoted("1:command:((" + names + "))"));
  return fmt::format(
      "{}() {{\n  local state line\n  _arguments -C{}\n  [[ $state == rest ]] && case $line[1] in\n"
      "{}  esac\n}}\n",
      zsh_function(command.path), specs, calls);
}

std::string zsh(const Command& program) {
  std::string out = "#compdef plait\n# Completes plait in zsh; made by: plait completion zsh\n";
  each_command(program, [&](const Command& command) { out += zsh_command(command); });
  return out +
         "if [[ $funcstack[1] == _plait ]]; then\n  _plait \"$@\"\nelse\n  compdef _plait plait\n"
         "fi\n";
}

// --- fish ---

std::string fish_value(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::flag:
      return "";
    case ArgumentKind::words:
      return fmt::format(" -x -a '{}'", fmt::join(argument.words, " "));
    case ArgumentKind::other:
      return " -x";
    case ArgumentKind::file:
      return " -r -F";
  }
  return "";
}

std::string fish_text(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

void fish_command(std::string& out, const Command& command) {
  // A command's own options, without those of its subcommands.
  const char* const where = command.subcommands.empty() ? "__plait_within" : "__plait_at";
  const std::string start = fmt::format("complete -c plait -n '{} {}'", where, command.path);
  for (const Argument& option : command.options) {
    out += start;
    for (const std::string& name : option.names)
      out += is_long(name) ? " -l " + name.substr(2) : " -s " + name.substr(1);
    out += fmt::format("{} -d {}\n", fish_value(option), fish_text(option.description));
  }
  for (const Argument& positional : command.positionals)
    out += start + (positional.kind == ArgumentKind::file ? " -F" : fish_value(positional)) + "\n";
  for (const Command& sub : command.subcommands)
    out += fmt::format("{} -a {} -d {}\n", start, last_word(sub.path), fish_text(sub.description));
}

std::string fish(const Command& program) {
  std::string out = R"fish(# Completes plait in fish; made by: plait completion fish
# Tells whether the words before the cursor begin with the words of a command.
function __plait_within
  set -l words (commandline -opc)
  set -e words[1]
  test (count $words) -ge (count $argv); or return 1
  for i in (seq (count $argv))
    test "$words[$i]" = "$argv[$i]"; or return 1
  end
end
# Tells whether they are the words of a command.
function __plait_at
  __plait_within $argv; and test (count (commandline -opc)) -eq (math (count $argv) + 1)
end
complete -c plait -f
)fish";
  each_command(program, [&](const Command& command) { fish_command(out, command); });
  return out;
}

struct Shell {
  const char* name;
  std::string (*script)(const Command& program);
};
constexpr Shell kShells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

}  // namespace

void add_completion(CLI::App& app, Session& session) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      add_command(app, session, "completion",
                  "Print a script that completes plait's commands in a shell", [=, &app, &session] {
                    const auto* const found = std::ranges::find(kShells, *shell, &Shell::name);
                    const std::string script = found->script(command_tree(app));
                    if (session.json)
                      print_json({{"shell", *shell}, {"script", script}});
                    else
                      std::cout << script;
                  });
  command->add_option("shell", *shell, "Shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_examples(command,
               "  source <(plait completion bash)                # in ~/.bashrc\n"
               "  source <(plait completion zsh)                 # in ~/.zshrc, after compinit\n"
               "  plait completion fish > ~/.config/fish/completions/plait.fish");
}

}  // namespace plait::cli
