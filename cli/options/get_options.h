// The options of the settings of strategy `get` on GPUs, all from the table of plan/get_tuning.h.
#pragma once

#include "cli/cli.h"
#include "plait/plan/get_tuning.h"

namespace plait::cli {

// Returns "--remote-ps".
std::string option_of(const GetParameter& p);

void add_get_options(CLI::App* command, GetTuning& tuning);

// Throws a UsageError that ends with `remedy` if the command was given one of these options but
// does not use them.
void require_get(const CLI::App& command, bool used, const char* remedy);

// Returns the settings in effect by the names of the options: numbers, or the words of the options.
json to_json(const GetTuning& tuning);

// Returns the options that make these settings, as the command line takes them: "--ps 32 --dist 4".
// Empty for the default ones.
std::string options_text(const GetTuning& tuning);

// Returns the heading of these options in --help, and their names.
OptionGroup get_option_group();

}  // namespace plait::cli
