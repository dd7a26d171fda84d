// The names of settings in texts. The library does not know how its user sets anything: on the
// command line as "--strategy bulk", in Python as "strategy='bulk'". Texts have settings from here,
// and the door through which the process was entered says how it writes them.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace plait {

// Returns how a user writes a setting: "first-line", by itself or with values of which one is to be
// taken.
using SettingWriter = std::string (*)(std::string_view name,
                                      std::span<const std::string_view> values);

// Makes setting() use this writer. Call it before texts are made: some are kept.
void write_settings_by(SettingWriter writer);

// Return a setting as this process's user writes it; "strategy bulk" unless a door has said
// otherwise. Names are lower-case words with hyphens.
std::string setting(std::string_view name);
std::string setting(std::string_view name, std::string_view value);
std::string setting(std::string_view name, std::initializer_list<std::string_view> values);

// Returns "NAME VALUE or VALUE", or "NAME" if there are no values: what a writer may build on.
std::string plain_setting(std::string_view name, std::span<const std::string_view> values);

}  // namespace plait
