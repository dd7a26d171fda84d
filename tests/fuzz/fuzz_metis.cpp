// The reader of METIS files.
#include "plait/io/metis.h"
#include "tests/fuzz/check_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return plait::check_text_reader(data, size, [](std::string_view text) {
    return plait::parse_metis(text, "fuzz.graph").rows.graph;
  });
}
