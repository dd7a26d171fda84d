// Which options a run reads: one table. An option that is given to a run which does not read it is
// refused by its name. Options that the table does not have are read by every run of their command.
//
// The number of ranks is no reason to refuse an option: the same command line works on one rank,
// which moves no rows and waits for nobody, and on many.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"

namespace plait::cli {

// A setting of a run on which it depends whether another option is read.
struct Need {
  enum class Kind {
    given,    // `option` is given, and not as --flag=false
    absent,   // `option` is not given, but perhaps `values` instead
    any_of,   // `option` has one of `values`, given or by default; of a list, an item
    other,    // `option` has a value, or an item, that is none of `values`
    dataset,  // the dataset is `values`, as "a set of graphs"
  };
  Kind kind;
  const char* option = "";
  std::string values = {};  // with commas
};

// The options are read if one of `needs` is met. An option that several rows have is read if each
// of these has a need that is met.
struct OptionRule {
  std::vector<const char*> commands;  // "bench model"
  std::vector<std::string> options;
  std::vector<Need> needs;
};
std::span<const OptionRule> option_rules();
// Adds the rules that a function returns, for options that few programs have. Adding them again
// does nothing.
using RulesOfOptions = std::vector<OptionRule> (*)();
void add_option_rules(RulesOfOptions rules);

// Needs, as rules write them.
namespace needs {

Need given(const char* option);
Need absent(const char* option);
Need any_of(const char* option, std::string values);
Need other(const char* option, std::string values);
Need one_graph();
Need set_of_graphs();

}  // namespace needs

// Returns the name of a command below the program's: "bench model".
std::string path_of(const CLI::App& command);

// Facts that are known of the dataset: values of Need::Kind::dataset that are met.
using DatasetFacts = std::vector<std::string>;
DatasetFacts facts_of(const Dataset& dataset);

// Throws a UsageError that names an option which was given, but is not read in this run, and says
// what it is read with. Without facts, needs of the dataset count as met.
void require_read(const CLI::App& command, const DatasetFacts* facts = nullptr);

}  // namespace plait::cli
