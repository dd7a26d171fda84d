// Whatever the bytes, the reader of edge lists returns edges between existing vertices, numbered
// in the order of their original ids, or throws an Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plait/base/error.h"
#include "plait/io/edge_list_file.h"
#include "tests/fuzz/check_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const plait::ParsedEdgeList parsed =
        plait::parse_edge_list({reinterpret_cast<const char*>(data), size}, "fuzz.txt",
                               {.first_line = static_cast<plait::FirstLine>(size % 4)});
    plait::check(parsed.edges);
    const auto vertices = std::visit([](const auto& list) { return list.vertices; }, parsed.edges);
    if (!parsed.original_ids.empty() && parsed.original_ids.size() != vertices) std::abort();
    if (!std::is_sorted(parsed.original_ids.begin(), parsed.original_ids.end())) std::abort();
  } catch (const plait::Error&) {
  }
  return 0;
}
