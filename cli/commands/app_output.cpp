#include "cli/commands/app_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/io/npy.h"

namespace plait::cli {
namespace {

std::string ending_of(const std::string& path) {
  return std::filesystem::path(path).extension().string();
}

std::uint64_t rows_of(const AppResult& result) {
  return std::visit([](const auto& values) { return values.size(); }, result.columns[0].values);
}

template <class T>
void write_array(const std::string& path, const AppResult& result) {
  const std::uint64_t rows = rows_of(result), width = result.columns.size();
  Buffer<T> all(rows * width);
  for (std::uint64_t k = 0; k < width; ++k)
    std::visit(
        [&](const auto& values) {
          for (std::uint64_t v = 0; v < rows; ++v) all[v * width + k] = static_cast<T>(values[v]);
        },
        result.columns[k].values);
  AtomicFile file(path);
  if (width == 1)
    write_npy<T>(file, std::array{rows}, all.span());
  else
    write_npy<T>(file, std::array{rows, width}, all.span());
  file.commit();
}

void write_lines(const std::string& path, const AppResult& result) {
  const bool csv = ending_of(path) == ".csv";
  AtomicFile file(path);
  std::string text;
  if (csv) {
    text = "vertex";
    for (const AppColumn& column : result.columns) text += "," + column.name;
    text += "\n";
  }
  constexpr std::size_t kAtOnce = 1 << 20;  // bytes
  for (std::uint64_t v = 0; v < rows_of(result); ++v) {
    if (csv) fmt::format_to(std::back_inserter(text), "{}", v);
    for (std::size_t k = 0; k < result.columns.size(); ++k) {
      if (csv || k > 0) text += csv ? ',' : ' ';
      std::visit(
          [&](const auto& values) { fmt::format_to(std::back_inserter(text), "{}", values[v]); },
          result.columns[k].values);
    }
    text += '\n';
    if (text.size() < kAtOnce) continue;
    file.write(text);
    text.clear();
  }
  file.write(text);
  file.commit();
}

}  // namespace

void check_column_file(const std::string& path) {
  constexpr std::array kEndings{".npy", ".csv", ".txt"};
  require<UsageError>(std::ranges::find(kEndings, ending_of(path)) != kEndings.end(),
                      "{}: the result can be written as .npy, .csv or .txt", path);
}

void write_columns(const std::string& path, const AppResult& result) {
  if (ending_of(path) != ".npy") return write_lines(path, result);
  const bool whole = std::ranges::all_of(result.columns, [](const AppColumn& column) {
    return std::holds_alternative<std::vector<std::int64_t>>(column.values);
  });
  whole ? write_array<std::int64_t>(path, result) : write_array<double>(path, result);
}

}  // namespace plait::cli
