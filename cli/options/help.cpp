// Shows a command in --help: options under headings, plain types with their ranges, descriptions
// wrapped to the page, then the default and the options that one needs or excludes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "cli/cli.h"
#include "cli/options/get_options.h"

namespace plait::cli {
namespace {

constexpr std::size_t kColumn = 30;      // where descriptions begin
constexpr std::size_t kLineWidth = 100;  // of a line

// Headings of options that several commands have. A command may give them another heading.
std::vector<OptionGroup> common_groups() {
  return {
      {"Reading the graph", {"--vertices", "--first-line", "--directed"}},
      {"GPUs and ranks",
       {"--ranks", "--gpus", "--strategy", "--partition", "--reorder", "--transport", "--wire",
        "--exact", "--explain", "--optimise", "--timeout", "--gpu-timeout"}},
      get_option_group(),
      {"Output", {"--help", "--json", "--quiet", "--profile", "--trace"}},
  };
}

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const std::size_t begin = text.find(open);
  if (begin == std::string::npos) return "";
  const std::size_t start = begin + open.size();
  const std::size_t end = text.find(close, start);
  return end == std::string::npos ? "" : text.substr(start, end - start);
}

// `type` is CLI11's name of a type and of the checks of its values: "INT:INT in [1 - 64]:...".
std::string plain_type(const std::string& type) {
  if (const std::string words = between(type, "{", "}"); !words.empty()) return "{" + words + "}";
  if (type.find(":SIZE") != std::string::npos) return "SIZE";
  const std::string base = type.substr(0, type.find(':'));
  if (base == "INT" || base == "UINT") return "N";
  if (base == "FLOAT") return "X";
  return base == "TEXT" ? "PATH" : base;
}

std::string plain_range(const std::string& type) {
  const std::string range = between(type, " in [", "]");
  const std::size_t dash = range.find(" - ");
  if (dash == std::string::npos) return "";
  return fmt::format(" ({} to {})", range.substr(0, dash), range.substr(dash + 3));
}

// Names are sorted, because CLI11 keeps options by address.
std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns a text as one piece or, if it is too long for a line, its words.
std::vector<std::string> broken_if_long(const std::string& text) {
  if (kColumn + text.size() <= kLineWidth) return {text};
  return CLI::detail::split(text, ' ');
}

// Returns lines of pieces of text, from kColumn on; a piece is not broken.
std::string wrapped(const std::vector<std::string>& pieces) {
  std::string lines, line;
  for (const std::string& piece : pieces) {
    if (!line.empty() && kColumn + line.size() + 1 + piece.size() > kLineWidth) {
      lines += line + "\n" + std::string(kColumn, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + piece;
  }
  return lines + line;
}

// Returns the words of the description, then notes in brackets.
std::vector<std::string> pieces_of(const CLI::Option& option) {
  std::vector<std::string> pieces = CLI::detail::split(option.get_description(), ' ');
  const auto add = [&](const char* what, const std::string& value) {
    if (value.empty()) return;
    std::ranges::move(broken_if_long(fmt::format("[{}{}]", what, value)),
                      std::back_inserter(pieces));
  };
  if (option.get_required() && !option.get_positional()) pieces.emplace_back("[required]");
  const std::string standard = option.get_default_str();
  add("default: ", standard.starts_with('[') ? between(standard, "[", "]") : standard);  // a list
  add("needs ", names_of(option.get_needs()));
  add("not with ", names_of(option.get_excludes()));
  return pieces;
}

// Breaks a list of words in braces that is too long for a line, after commas.
std::string broken(const std::string& text) {
  const std::size_t indent = text.find('{') + 1;
  std::string lines, line;
  for (const std::string& word : CLI::detail::split(text, ',')) {
    const std::string piece = word + (word.ends_with('}') ? "" : ",");
    if (!line.empty() && line.size() + piece.size() > kLineWidth) {
      lines += line + "\n";
      line = std::string(indent, ' ');
    }
    line += piece;
  }
  return lines + line;
}

class PlainHelp : public CLI::Formatter {
 public:
  PlainHelp() { label("Positionals", "Arguments"); }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           grouped_options(app) + make_subcommands(app, mode) + "\n" + make_footer(app);
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string text = "  " + make_option_name(option, is_positional) + make_option_opts(option);
    if (text.size() < kColumn)
      text.resize(kColumn, ' ');
    else
      text = (text.size() > kLineWidth && text.ends_with('}') ? broken(text) : text) + "\n" +
             std::string(kColumn, ' ');
    return text + wrapped(pieces_of(*option)) + "\n";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_items_expected_max() == 0) return "";  // a flag
    const std::string type = option->get_type_name();
    const bool several = option->get_items_expected_max() > 1;
    const char* const more = !several ? "" : option->get_delimiter() == '\0' ? " ..." : ",...";
    return " " + plain_type(type) + more + plain_range(type);
  }

 private:
  // Options keep their order; the heading of --help comes last.
  std::string grouped_options(const CLI::App* app) const {
    std::vector<std::string> groups = app->get_groups();
    const CLI::Option* const help = app->get_help_ptr();
    if (help != nullptr)
      std::stable_partition(groups.begin(), groups.end(),
                            [&](const std::string& name) { return name != help->get_group(); });
    std::string text;
    for (const std::string& name : groups) {
      const auto options = app->get_options([&](const CLI::Option* option) {
        return option->get_group() == name && option->nonpositional();
      });
      if (!name.empty() && !options.empty()) text += make_group(name, false, options);
    }
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> plain_help() { return std::make_shared<PlainHelp>(); }

void group_options(CLI::App* command, const std::vector<OptionGroup>& groups) {
  for (const OptionGroup& group : common_groups())
    for (const std::string& name : group.options)
      if (CLI::Option* const option = command->get_option_no_throw(name))
        option->group(group.heading);
  for (const OptionGroup& group : groups)
    for (const std::string& name : group.options) command->get_option(name)->group(group.heading);
}

}  // namespace plait::cli
