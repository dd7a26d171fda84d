// The files that analytics commands write: a row for each vertex, in the order of their numbers.
#pragma once

#include <string>

#include "plait/apps/app.h"

namespace plait::cli {

// Throws UsageError unless the name ends as that of a file which write_columns() can write.
void check_column_file(const std::string& path);

// Writes the columns of all vertices, in one of these forms by the ending of the name:
//   .npy   vertices x columns (one column: vertices), of int64 or float64
//   .csv   a line of names, then the number of each vertex and its values
//   .txt   the values of each vertex, with spaces between
// Replaces the file whole or not at all.
void write_columns(const std::string& path, const AppResult& result);

}  // namespace plait::cli
