#include "cli/commands/app_output.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "cli/ranks.h"
#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/io/npy.h"
#include "plait/io/text.h"

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

// Appends a row as a line; put(k) appends value k.
template <class Put>
void append_row(std::string& text, bool csv, std::uint64_t number, std::uint64_t width, Put put) {
  if (csv) append_number(text, number);
  for (std::uint64_t k = 0; k < width; ++k) {
    if (csv || k > 0) text += csv ? ',' : ' ';
    put(k);
  }
  text += '\n';
}

void write_lines(const std::string& path, const AppResult& result) {
  const bool csv = ending_of(path) == ".csv";
  AtomicFile file(path);
  if (csv) {
    std::string names = "vertex";
    for (const AppColumn& column : result.columns) names += "," + column.name;
    file.write(names + "\n");
  }
  write_text(rows_of(result), file, [&](std::string& text, std::uint64_t v) {
    append_row(text, csv, v, result.columns.size(), [&](std::uint64_t k) {
      std::visit(
          [&](const auto& values) { fmt::format_to(std::back_inserter(text), "{}", values[v]); },
          result.columns[k].values);
    });
  });
  file.commit();
}

json to_json(const AppReport& report, const Times& times, const World& world,
             const Session& session) {
  json all = {{"app", report.app},
              {"graph", report.dataset.name},
              {"ranks", world.size()},
              {"device", device_name(session)}};
  if (!report.partition.empty()) all["partition"] = report.partition;
  all["vertices"] = report.dataset.vertices();
  all["edges"] = report.dataset.edges();
  for (const AppFact& fact : report.facts)
    std::visit([&](const auto& value) { all[fact.name] = value; }, fact.value);
  all["milliseconds"] = times.median();
  all["least_ms"] = times.least();
  all["most_ms"] = times.most();
  all["verified"] = report.options.verify;
  all["out"] = report.options.out.empty() ? json(nullptr) : json(report.options.out);
  return all;
}

void print_text(const AppReport& report, const Times& times, const World& world,
                const Session& session) {
  std::string facts;
  for (const AppFact& fact : report.facts)
    std::visit(
        [&](const auto& value) {
          facts += fmt::format("{}{} {}", facts.empty() ? "" : ", ", fact.name, json(value).dump());
        },
        fact.value);
  fmt::print("{} of {} on {}: {}\n", report.app, report.dataset.name, ranks_of(world, session),
             facts);
  fmt::print("{:.3f} ms", times.median());
  if (times.ms.size() > 1)
    fmt::print(", the median of {} runs ({:.3f} to {:.3f})", times.ms.size(), times.least(),
               times.most());
  if (report.options.verify) fmt::print("; verified");
  if (!report.options.out.empty()) fmt::print("; written to {}", printable(report.options.out));
  fmt::print("\n");
}

}  // namespace

void add_answer_options(CLI::App* command, Session& session, AnswerOptions& options,
                        const AnswerHelp& help) {
  as_output(session, command->add_option("-o,--out", options.out, help.file));
  command->add_flag("--verify", options.verify, help.verified);
  command->add_option("--repetitions", options.repetitions, help.repeated)
      ->check(in_range(1, 10000))
      ->capture_default_str();
}

void check_answer_file(const std::string& path) {
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

MatrixFile::MatrixFile(const std::string& path, std::uint64_t rows, std::uint64_t width,
                       std::string_view row, std::string_view column)
    : file_(path), width_(width) {
  if (ending_of(path) == ".npy")
    file_.write(npy_header(npy_type<std::int64_t>(), std::array{rows, width}));
  if (ending_of(path) != ".csv") return;
  file_.write(row);
  write_text(width, file_, [&](std::string& text, std::uint64_t k) {
    text.append(",").append(column);
    append_number(text, k);
  });
  file_.write("\n");
}

void MatrixFile::write(std::span<const std::int64_t> values) {
  const std::string ending = ending_of(file_.path());
  const std::uint64_t rows = values.size() / width_;
  if (ending == ".npy")
    file_.write(std::as_bytes(values));
  else
    write_text(rows, file_, [&](std::string& text, std::uint64_t i) {
      append_row(text, ending == ".csv", written_ + i, width_,
                 [&](std::uint64_t k) { append_number(text, values[i * width_ + k]); });
    });
  written_ += rows;
}

void MatrixFile::commit() { file_.commit(); }

void print_report(const AppReport& report, const World& world, const Session& session) {
  Times times{.ms = report.ms};
  std::ranges::sort(times.ms);
  if (session.json)
    print_json(to_json(report, times, world, session));
  else
    print_text(report, times, world, session);
}

}  // namespace plait::cli
