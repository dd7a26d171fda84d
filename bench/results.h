// Writes measurements as lines of JSON, beside the text that a benchmark prints. The format is in
// bench/measured/README.md.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "plait/base/error.h"

namespace plait {

using ResultFields = nlohmann::ordered_json;

// The fields of a measurement: median, least and greatest of sorted numbers in this unit.
template <class Numbers>
ResultFields spread_fields(const Numbers& sorted, const std::string& unit = "ms") {
  return {{"median_" + unit, sorted[sorted.size() / 2]},
          {"least_" + unit, sorted.front()},
          {"most_" + unit, sorted.back()}};
}

// A file that holds what one run of a benchmark measured. It replaces the file of the run before,
// and has each line as soon as it is measured.
class Results {
 public:
  explicit Results(const std::string& path) {
    std::error_code failed;  // shows when the file is opened
    std::filesystem::create_directories(std::filesystem::absolute(path).parent_path(), failed);
    file_.open(path);
    require(file_.is_open(), "{} cannot be written", path);
  }

  void add(const char* bench, ResultFields case_fields, const ResultFields& fields) {
    ResultFields line{{"bench", bench}, {"case", std::move(case_fields)}};
    line.update(fields);
    file_ << line.dump() << std::endl;
    require(file_.good(), "the file of results cannot be written");
  }

 private:
  std::ofstream file_;
};

}  // namespace plait
