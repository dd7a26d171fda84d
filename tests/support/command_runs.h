// Runs commands in this process, one after the other, and shows what they print and write.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "plait/base/error.h"
#include "plait/world/report.h"

namespace plait::cli {

using Words = std::vector<std::string>;

inline Words words_of_line(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

struct Ran {
  int code = 0;
  nlohmann::json result;  // the object that --json prints; null: none
  std::string error;      // stderr
};

// A folder in which commands run, of which nothing remains.
class CommandRuns {
 public:
  CommandRuns() : before_(std::filesystem::current_path()) {
    std::string name = (std::filesystem::temp_directory_path() / "plait-cli-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("no folder can be made");
    folder_ = name;
    std::filesystem::current_path(folder_);
    for (const char* variable : {"PLAIT_ROUTES", "PLAIT_MACHINES"}) ::setenv(variable, "", 1);
  }
  ~CommandRuns() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  CommandRuns(const CommandRuns&) = delete;
  CommandRuns& operator=(const CommandRuns&) = delete;

  Ran run(const Words& words) const {
    std::vector<std::string> all{"plait"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : all) arguments.push_back(word.data());
    const std::ostringstream out;
    Ran ran;
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();  // text that is no JSON
    std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
    Session session;
    ran.code = run_command(static_cast<int>(arguments.size()), arguments.data(),
                           {add_commands, report_error}, session);
    std::cout.rdbuf(before);
    testing::internal::GetCapturedStdout();
    ran.error = testing::internal::GetCapturedStderr();
    ran.result = nlohmann::json::parse(out.str(), nullptr, false);
    return ran;
  }
  Ran run(const std::string& line) const { return run(words_of_line(line)); }

  // Returns the contents of all files, by name.
  std::string files() const {
    std::string all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file())
        all += entry.path().filename().string() + ":" + content(entry.path()) + "\n";
    return all;
  }

 private:
  static std::string content(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  std::filesystem::path before_, folder_;
};

}  // namespace plait::cli
