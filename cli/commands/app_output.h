// What commands of analytics have in common: options for their answers, the files that they write,
// and what they tell of a run.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/cli.h"
#include "plait/apps/app.h"
#include "plait/base/file.h"
#include "plait/measure/bench.h"

namespace plait::cli {

struct AnswerOptions {
  std::string out;
  bool verify = false;
  int repetitions = 1;
};

// Adds --out, --verify and --repetitions. `file`, `verified` and `repeated` are their help.
struct AnswerHelp {
  std::string file, verified, repeated;
};
void add_answer_options(CLI::App* command, Session& session, AnswerOptions& options,
                        const AnswerHelp& help);
inline const std::vector<std::string> kAnswerOptions{"--out", "--verify", "--repetitions"};

// Files have one of these forms by the ending of the name:
//   .npy   an array of int64 or float64
//   .csv   a line of names, then a line per row with its number and its values
//   .txt   a line per row with its values, with spaces between

// Throws UsageError unless the name has one of these endings.
void check_answer_file(const std::string& path);

// Writes the columns of all vertices, a row for each in the order of their numbers: an array of
// vertices x columns, or of one dimension if there is one column. Replaces the file whole or not at
// all.
void write_columns(const std::string& path, const AppResult& result);

// A file for a matrix of whole numbers whose rows arrive block by block.
class MatrixFile {
 public:
  // `row` is the name of a row in .csv, `column` that of a column, whose number follows.
  MatrixFile(const std::string& path, std::uint64_t rows, std::uint64_t width, std::string_view row,
             std::string_view column);
  // Appends rows x width numbers.
  void write(std::span<const std::int64_t> values);
  // Puts the file in its place, once all rows have been written.
  void commit();

 private:
  AtomicFile file_;
  const std::uint64_t width_;
  std::uint64_t written_ = 0;  // rows
};

// What is told of a run.
struct AppReport {
  const char* app;
  const Dataset& dataset;
  std::string partition;  // empty: there is none
  std::vector<AppFact> facts;
  std::vector<double> ms;  // of each repetition
  const AnswerOptions& options;
};
// Prints it on stdout, as JSON or in two lines.
void print_report(const AppReport& report, const World& world, const Session& session);

}  // namespace plait::cli
