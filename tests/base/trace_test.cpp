#include "plait/base/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plait/base/error.h"

namespace plait {
namespace {

TEST(Trace, TextComesBack) {
  const std::vector<TraceSpan> spans{{"local \"pass\"", "sum", 10, 20},
                                     {"push", "link", 12, 1u << 31}};
  const auto back = spans_of_text(to_text(spans));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, spans[0].name);
  EXPECT_EQ(back[1].lane, "link");
  EXPECT_EQ(back[1].end, 1u << 31);
  EXPECT_THROW(spans_of_text("{"), Error);
  EXPECT_THROW(spans_of_text("[[1]]"), Error);
}

TEST(Trace, AProcessARankAndALaneAStream) {
  const auto path = std::filesystem::temp_directory_path() / "plait_trace_test.json";
  write_trace(path,
              {{{"a", "sum", 5000, 7000}, {"b", "link", 6000, 6500}}, {{"c", "sum", 4000, 9000}}});
  const auto trace = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  int spans = 0, processes = 0, lanes = 0;
  for (const auto& event : trace.at("traceEvents")) {
    processes += event.at("name") == "process_name";
    lanes += event.at("name") == "thread_name";
    if (event.at("ph") != "X") continue;
    ++spans;
    if (event.at("name") == "b") {
      EXPECT_EQ(event.at("pid"), 0);
      EXPECT_EQ(event.at("tid"), 1);
      EXPECT_DOUBLE_EQ(event.at("ts"), 2);  // microseconds after the first
      EXPECT_DOUBLE_EQ(event.at("dur"), 0.5);
    }
  }
  EXPECT_EQ(spans, 3);
  EXPECT_EQ(processes, 2);
  EXPECT_EQ(lanes, 3);
  EXPECT_THROW(write_trace("/nowhere/trace.json", {}), Error);
}

}  // namespace
}  // namespace plait
