// A trace of the parts of a step in time, in the format of Chrome's and Perfetto's viewers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// One part of the work of a rank.
struct TraceSpan {
  std::string name;
  std::string lane;          // within the rank: a stream, a thread
  std::uint64_t begin, end;  // ns, on a clock that ranks share
};

// Writes spans as one line of text, to send between ranks. The inverse throws Error on anything
// else.
std::string to_text(const std::vector<TraceSpan>& spans);
std::vector<TraceSpan> spans_of_text(std::string_view text);

// Replaces the file. Each rank is a process, with one lane for each lane of its spans. Times count
// from the first span. Throws Error if it cannot be written.
void write_trace(const std::string& path, const std::vector<std::vector<TraceSpan>>& ranks);

}  // namespace plait
