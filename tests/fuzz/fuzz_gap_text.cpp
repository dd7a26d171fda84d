// The reader of edge lists whose ids are vertices.
#include "plait/io/edge_list_file.h"
#include "tests/fuzz/check_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plait::EdgeListOptions options{.first_line = static_cast<plait::FirstLine>(size % 4),
                                       .ids_are_vertices = true,
                                       .vertices = size % 3 * 5,
                                       .weighted = size % 2 == 0};
  return plait::check_text_reader(data, size, [&](std::string_view text) {
    return plait::parse_edge_list(text, "fuzz.el", options).edges;
  });
}
