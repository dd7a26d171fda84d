// Checks that apply to the values of all options by their types, so that declarations need not add
// them: a number is finite and 0 or more, and a text, such as the name of a file, is not empty.
#include <charconv>
#include <cmath>

#include "cli/cli.h"

namespace plait::cli {
namespace {

constexpr std::size_t kLongestNumber = 64;  // characters; a line may quote numbers of this length

// Accepts decimal digits that fit 64 bits; refuses octal and hexadecimal forms, which CLI11 knows.
bool is_whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all && (text.size() == 1 || text[0] != '0');
}

bool is_finite_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all && std::isfinite(value) && value >= 0;
}

// This check runs before other checks, which would print the whole text.
std::string check_length(const std::string& text) {
  if (text.size() <= kLongestNumber) return "";
  return fmt::format("{} characters are too many for a number", text.size());
}

std::string check_whole_number(const std::string& text) {
  if (is_whole_number(text)) return "";
  return fmt::format("'{}' is not a whole number in 0..2^64 - 1", text);
}

std::string check_finite_number(const std::string& text) {
  if (is_finite_number(text)) return "";
  return fmt::format("'{}' is not a finite number of 0 or more", text);
}

std::string check_text(const std::string& text) { return text.empty() ? "its value is empty" : ""; }

void check_number(CLI::Option& option, std::string (*check)(const std::string&)) {
  option.check(check, "NONNEGATIVE");
  option.transform(CLI::Validator([](std::string& text) { return check_length(text); }, ""));
}

void check_option(CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.starts_with("UINT") || type.starts_with("INT"))
    check_number(option, check_whole_number);
  else if (type.starts_with("FLOAT"))
    check_number(option, check_finite_number);
  else if (option.get_items_expected_max() > 0)  // no flag
    option.check(check_text);
}

}  // namespace

void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) check_option(*option);
  for (CLI::App* command : app.get_subcommands({})) check_values(*command);
}

}  // namespace plait::cli
