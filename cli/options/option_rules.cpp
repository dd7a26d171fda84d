#include "cli/options/option_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/options/get_options.h"
#include "plait/base/error.h"

namespace plait::cli {
namespace {

std::vector<std::string> options_of_get() {
  std::vector<std::string> options;
  for (const GetParameter& parameter : get_parameters()) options.push_back(option_of(parameter));
  return options;
}

std::vector<OptionRule> all_rules() {
  using namespace needs;
  const Need gpus = given("--gpus"), on_gpus{Need::Kind::absent, "--ranks", "--gpus"};
  const Need metis = any_of("--partition", "metis"), metis_order = any_of("--reorder", "metis");
  return {
      // Training.
      {{"train"}, {"--optimise"}, {any_of("--strategy", "auto")}},
      {{"train"}, {"--optimise", "--wire"}, {absent("--sampled")}},
      {{"train"},
       {"--fanout", "--batch", "--prefetch", "--checkpoint-steps", "--structure", "--cooperative",
        "--by-weight", "--with-replacement", "--latest", "--vertex-times", "--edge-times",
        "--example-times"},
       {given("--sampled")}},
      {{"train"}, {"--checkpoint-every", "--checkpoint-steps"}, {given("--checkpoint")}},
      {{"train"}, {"--with-replacement"}, {other("--fanout", "-1")}},
      {{"train"},
       {"--latest", "--example-times"},
       {given("--vertex-times"), given("--edge-times")}},
      {{"train"}, {"--structure", "--tf32", "--recorded", "--unrecorded"}, {gpus}},
      // GPUs and ranks.
      {{"aggregate", "train", "infer", "plan", "bench model", "tune", "study"},
       {"--transport"},
       {gpus}},
      {{"aggregate", "train", "infer", "walk", "bench model", "tune", "study", "doctor"},
       {"--gpu-timeout"},
       {gpus}},
      {{"walk"}, {"--structure"}, {gpus}},
      {{"tune"}, {"--settings"}, {gpus}},
      {{"doctor"}, {"--timeout"}, {given("--measure")}},
      {{"bench aggregate"}, {"--transport", "--gpu-timeout", "--trace"}, {on_gpus}},
      {{"bench messages"}, {"--transport", "--gpu-timeout"}, {gpus}},
      {{"aggregate", "train", "infer", "plan"}, options_of_get(), {any_of("--strategy", "get")}},
      {{"aggregate", "train", "infer", "plan"}, options_of_get(), {gpus}},
      {{"bench aggregate"}, options_of_get(), {any_of("--strategies", "get")}},
      {{"bench aggregate"}, options_of_get(), {on_gpus}},
      {{"plan"}, {"--transport", "--reorder"}, {absent("--store")}},
      // Seeds.
      {{"aggregate", "bench aggregate", "bench messages"}, {"--seed"}, {metis, metis_order}},
      {{"partition"}, {"--seed"}, {any_of("--partition", "metis,all"), metis_order}},
      {{"bench zoo"}, {"--seed"}, {metis}},
      {{"tune"}, {"--seed"}, {any_of("--partitions", "metis"), metis_order}},
      {{"reorder"}, {"--seed"}, {any_of("--method", "metis")}},
      // Graphs that are generated.
      {{"generate dcsbm", "generate crawl"}, {"--width", "--noise"}, {absent("--no-features")}},
      {{"generate dcsbm", "generate crawl"}, {"--noise"}, {other("--width", "0")}},
      {{"generate dcsbm"}, {"--width", "--noise", "--labels"}, {other("--classes", "0")}},
  };
}

std::vector<std::string> items(const std::string& list) { return CLI::detail::split(list, ','); }

bool is_given(const CLI::App& command, const std::string& name) {
  const CLI::Option* const option = command.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

// Tells whether an option is given, but not as --flag=false.
bool is_on(const CLI::App& command, const char* name) {
  if (!is_given(command, name)) return false;
  const CLI::Option& option = *command.get_option(name);
  return option.get_items_expected_max() > 0 || option.as<bool>();
}

// Returns the values that an option has, given or by default. CLI11 shows lists in brackets.
std::vector<std::string> values_of(const CLI::App& command, const char* name) {
  const CLI::Option& option = *command.get_option(name);
  if (option.count() == 0) {
    std::string standard = option.get_default_str();
    std::erase_if(standard, [](char c) { return c == '[' || c == ']'; });
    return items(standard);
  }
  std::vector<std::string> all;
  for (const std::string& result : option.results())
    for (std::string& item : items(result)) all.push_back(std::move(item));
  return all;
}

bool is_met(const Need& need, const CLI::App& command, const DatasetFacts* facts) {
  if (need.kind == Need::Kind::dataset)
    return facts == nullptr || std::ranges::find(*facts, need.values) != facts->end();
  if (need.kind == Need::Kind::given) return is_on(command, need.option);
  if (need.kind == Need::Kind::absent) return !is_on(command, need.option);
  const std::vector<std::string> listed = items(need.values);
  return std::ranges::any_of(values_of(command, need.option), [&](const std::string& value) {
    const bool in_list = std::ranges::find(listed, value) != listed.end();
    return in_list == (need.kind == Need::Kind::any_of);
  });
}

std::string described(const Need& need) {
  switch (need.kind) {
    case Need::Kind::given:
      return fmt::format("with {}", need.option);
    case Need::Kind::absent:
      return need.values.empty() ? fmt::format("without {}", need.option)
                                 : fmt::format("with {} instead of {}", need.values, need.option);
    case Need::Kind::any_of:
      return fmt::format("with {} {}", need.option, fmt::join(items(need.values), " or "));
    case Need::Kind::other:
      return fmt::format("with another {} than {}", need.option, need.values);
    case Need::Kind::dataset:
      break;
  }
  return fmt::format("for {}", need.values);
}

bool is_among(const std::vector<const char*>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The rules, and the functions whose rules were added to them.
struct KnownRules {
  std::vector<OptionRule> rules = all_rules();
  std::vector<RulesOfOptions> added;
};
KnownRules& known_rules() {
  static KnownRules known;
  return known;
}

}  // namespace

namespace needs {

Need given(const char* option) { return {.kind = Need::Kind::given, .option = option}; }
Need absent(const char* option) { return {.kind = Need::Kind::absent, .option = option}; }
Need any_of(const char* option, std::string values) {
  return {Need::Kind::any_of, option, std::move(values)};
}
Need other(const char* option, std::string values) {
  return {Need::Kind::other, option, std::move(values)};
}
Need one_graph() { return {.kind = Need::Kind::dataset, .values = "one graph"}; }
Need set_of_graphs() { return {.kind = Need::Kind::dataset, .values = "a set of graphs"}; }

}  // namespace needs

std::span<const OptionRule> option_rules() { return known_rules().rules; }

void add_option_rules(RulesOfOptions rules) {
  KnownRules& known = known_rules();
  if (std::ranges::find(known.added, rules) != known.added.end()) return;
  known.added.push_back(rules);
  std::ranges::move(rules(), std::back_inserter(known.rules));
}

std::string path_of(const CLI::App& command) {
  const CLI::App* const above = command.get_parent();
  if (above == nullptr) return "";
  const std::string path = path_of(*above);
  return path.empty() ? command.get_name() : path + " " + command.get_name();
}

DatasetFacts facts_of(const Dataset& dataset) {
  return {(dataset.is_set_of_graphs() ? needs::set_of_graphs() : needs::one_graph()).values};
}

void require_read(const CLI::App& command, const DatasetFacts* facts) {
  const std::string path = path_of(command);
  for (const OptionRule& rule : option_rules()) {
    if (!is_among(rule.commands, path)) continue;
    const auto met = [&](const Need& need) { return is_met(need, command, facts); };
    if (std::ranges::any_of(rule.needs, met)) continue;
    for (const std::string& option : rule.options) {
      std::vector<std::string> needs;
      for (const Need& need : rule.needs) needs.push_back(described(need));
      require<UsageError>(!is_given(command, option), "{} does nothing in this run; it is read {}",
                          option, fmt::join(needs, ", or "));
    }
  }
}

}  // namespace plait::cli
