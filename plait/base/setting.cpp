#include "plait/base/setting.h"

#include <atomic>

#include "plait/base/names.h"

namespace plait {
namespace {

std::atomic<SettingWriter> writer_of_process{plain_setting};

}  // namespace

void write_settings_by(SettingWriter writer) { writer_of_process = writer; }

std::string setting(std::string_view name) { return writer_of_process.load()(name, {}); }

std::string setting(std::string_view name, std::string_view value) {
  return writer_of_process.load()(name, {&value, 1});
}

std::string setting(std::string_view name, std::initializer_list<std::string_view> values) {
  return writer_of_process.load()(name, {values.begin(), values.size()});
}

std::string plain_setting(std::string_view name, std::span<const std::string_view> values) {
  std::string text(name);
  if (!values.empty()) text += ' ' + in_words(values, "or");
  return text;
}

}  // namespace plait
