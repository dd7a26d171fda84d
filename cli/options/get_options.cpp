#include "cli/options/get_options.h"

#include <algorithm>

#include "plait/base/error.h"

namespace plait::cli {
namespace {

// "remote-ps": "remote_ps"
std::string key_of(const GetParameter& p) {
  std::string key(p.name);
  std::ranges::replace(key, '-', '_');
  return key;
}

}  // namespace

std::string option_of(const GetParameter& p) { return fmt::format("--{}", p.name); }

void add_get_options(CLI::App* command, GetTuning& tuning) {
  for (const GetParameter& p : get_parameters()) {
    const std::string text = p.words ? p.help : fmt::format("{} ({})", p.help, p.values);
    CLI::Option* const option = command->add_option_function<std::string>(
        option_of(p), [&tuning, set = p.set](const std::string& value) { set(tuning, value); },
        text);
    option->default_str(p.standard);
    if (p.words)
      show_words(option, std::string(p.values));
    else
      option->type_name("N");
  }
}

void require_get(const CLI::App& command, bool used, const char* remedy) {
  for (const GetParameter& p : get_parameters())
    require<UsageError>(used || command.count(option_of(p)) == 0,
                        "{} is a setting of strategy get on GPUs; {}", option_of(p), remedy);
}

json to_json(const GetTuning& tuning) {
  json all = json::object();
  for (const GetParameter& p : get_parameters()) {
    const std::string value = p.show(tuning);
    const bool number = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
    all[key_of(p)] = number ? json(std::stoul(value)) : json(value);
  }
  return all;
}

std::string options_text(const GetTuning& tuning) {
  std::string text;
  for (const GetChange& change : changes_of(tuning))
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", change.name, change.value);
  return text;
}

OptionGroup get_option_group() {
  OptionGroup group{"Strategy get on GPUs", {}};
  for (const GetParameter& p : get_parameters()) group.options.push_back(option_of(p));
  return group;
}

}  // namespace plait::cli
