// The names of settings in texts, as Python has them: strategy='bulk'.
#include <algorithm>

#include "plait/base/setting.h"

namespace plait {
namespace {

struct PythonName {
  std::string_view name, text;
};
// Settings that are no arguments of these names in Python.
constexpr PythonName kPythonNames[] = {{"directed", "directed=True"},
                                       {"gpus", "tensors on a GPU"},
                                       {"ranks", "tensors on the CPU"},
                                       {"cooperative", "batches that ranks share"}};

std::string literal(std::string_view value) {
  const bool number = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  return number ? std::string(value) : '\'' + std::string(value) + '\'';
}

// Writes "first_line='counts' or 'skip'".
std::string python_setting(std::string_view name, std::span<const std::string_view> values) {
  const auto* const other = std::ranges::find(kPythonNames, name, &PythonName::name);
  if (other != std::end(kPythonNames)) return std::string(other->text);
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  for (const std::string_view& value : values)
    text += (&value == values.data() ? "=" : " or ") + literal(value);
  return text;
}

// Done when Python loads the operations, before it can call one.
[[maybe_unused]] const bool kWritten = [] {
  write_settings_by(python_setting);
  return true;
}();

}  // namespace
}  // namespace plait
