#include "plait/base/trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/file.h"

namespace plait {

using nlohmann::json;

std::string to_text(const std::vector<TraceSpan>& spans) {
  json list = json::array();
  for (const TraceSpan& s : spans) list.push_back({s.name, s.lane, s.begin, s.end});
  return list.dump();
}

std::vector<TraceSpan> spans_of_text(std::string_view text) {
  std::vector<TraceSpan> spans;
  try {
    for (const json& s : json::parse(text))
      spans.push_back(
          {s.at(0), s.at(1), s.at(2).get<std::uint64_t>(), s.at(3).get<std::uint64_t>()});
  } catch (const json::exception& error) {
    throw Error(fmt::format("a rank's trace cannot be read: {}", error.what()));
  }
  return spans;
}

void write_trace(const std::string& path, const std::vector<std::vector<TraceSpan>>& ranks) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const auto& spans : ranks)
    for (const TraceSpan& s : spans) first = std::min(first, s.begin);
  AtomicFile file(path);
  std::string text = R"({"displayTimeUnit":"ns","traceEvents":[)";
  bool is_first = true;
  const auto add = [&](const json& event) {
    constexpr std::size_t kBuffer = 1 << 20;
    text += std::exchange(is_first, false) ? "\n" : ",\n";
    text += event.dump();
    if (text.size() < kBuffer) return;
    file.write(text);
    text.clear();
  };
  const auto add_name = [&](const char* kind, std::size_t rank, std::size_t lane,
                            std::string name) {
    add({{"ph", "M"},
         {"name", kind},
         {"pid", rank},
         {"tid", lane},
         {"args", {{"name", std::move(name)}}}});
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    add_name("process_name", rank, 0, fmt::format("rank {}", rank));
    std::vector<std::string> lanes;
    for (const TraceSpan& s : ranks[rank]) {
      const auto found = std::ranges::find(lanes, s.lane);
      const auto lane = static_cast<std::size_t>(found - lanes.begin());
      if (found == lanes.end()) {
        lanes.push_back(s.lane);
        add_name("thread_name", rank, lane, s.lane);
      }
      add({{"ph", "X"},
           {"name", s.name},
           {"pid", rank},
           {"tid", lane},
           {"ts", static_cast<double>(s.begin - first) / 1e3},
           {"dur", static_cast<double>(s.end - s.begin) / 1e3}});
    }
  }
  file.write(text + "\n]}\n");
  file.commit();
}

}  // namespace plait
