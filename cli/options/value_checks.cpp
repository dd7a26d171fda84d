// Checks that apply to the values of all options by their types, so that declarations need not add
// them: a number is finite and 0 or more, and a text, such as the name of a file, is not empty, nor
// is an item of a list.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>

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

// Runs before other checks, which would print the whole text.
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
  // A transformation runs before all checks: ranges say of a text that is no number what is false.
  option.transform(CLI::Validator(
      [check](std::string& text) {
        const std::string too_long = check_length(text);
        return too_long.empty() ? check(text) : too_long;
      },
      ""));
}

// Returns the number of bytes that a text such as "512M", "2 GiB" or "1000" names, or 0.
std::uint64_t bytes_of(std::string_view text) {
  static constexpr std::string_view kUnits = "KMGTPE";  // powers of 1024
  const auto last = [&] {
    return text.empty() ? '\0'
                        : static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
  };
  const bool of_bytes = last() == 'B';
  if (of_bytes) text.remove_suffix(1);
  const bool binary = of_bytes && last() == 'I';
  if (binary) text.remove_suffix(1);
  const std::size_t unit = kUnits.find(last());
  if (unit != kUnits.npos) text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if ((binary && unit == kUnits.npos) || !is_whole_number(text)) return 0;
  std::uint64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  const std::size_t shift = unit == kUnits.npos ? 0 : 10 * (unit + 1);
  return bytes << shift >> shift == bytes ? bytes << shift : 0;
}

constexpr const char* kBytes = "SIZE";  // in the name of an option's type

void check_option(CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find(kBytes) != type.npos) return;
  if (type.starts_with("UINT") || type.starts_with("INT"))
    check_number(option, check_whole_number);
  else if (type.starts_with("FLOAT"))
    check_number(option, check_finite_number);
  else if (option.get_items_expected_max() > 0)  // no flag
    option.check(check_text);
}

void check_items(const CLI::Option& option, std::string_view list) {
  const std::string between{option.get_delimiter()};
  const bool empty = list.starts_with(between) || list.ends_with(between) ||
                     list.find(between + between) != list.npos;
  if (empty)
    throw CLI::ValidationError(option.get_name(), fmt::format("'{}' has an empty item", list));
}

}  // namespace

CLI::Validator as_bytes() {
  return {[](std::string& text) -> std::string {
            if (std::string too_long = check_length(text); !too_long.empty()) return too_long;
            const std::uint64_t bytes = bytes_of(text);
            if (bytes == 0)
              return fmt::format(
                  "'{}' is not a size in bytes above 0 and below 2^64, such as 2000000, 512M or 8G",
                  text);
            text = std::to_string(bytes);
            return {};
          },
          kBytes};
}

void check_lists(const CLI::App& app, std::span<char* const> words) {
  const CLI::App* command = &app;
  const CLI::Option* option = nullptr;  // whose values follow
  for (const std::string_view word : words) {
    if (word == "--") return;
    if (word.starts_with("--")) {
      const std::size_t assigned = word.find('=');
      if (assigned == word.size() - 1)  // CLI11 would take the next word
        throw CLI::ValidationError(std::string(word.substr(0, assigned)), "its value is empty");
      option = command->get_option_no_throw(std::string(word.substr(0, assigned)));
      if (option != nullptr && option->get_delimiter() == '\0') option = nullptr;
      if (option != nullptr && assigned != word.npos)
        check_items(*option, word.substr(assigned + 1));
    } else if (option != nullptr) {
      check_items(*option, word);
    } else {
      const auto named = command->get_subcommands(
          [&](const CLI::App* sub) { return sub->check_name(std::string(word)); });
      if (!named.empty()) command = named.front();
    }
  }
}

void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) check_option(*option);
  for (CLI::App* command : app.get_subcommands({})) check_values(*command);
}

}  // namespace plait::cli
