// The reader of Ligra's adjacency text.
#include "plait/io/ligra.h"
#include "tests/fuzz/check_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return plait::check_text_reader(data, size, [](std::string_view text) {
    const plait::AnyCsr targets = plait::parse_ligra(text, "fuzz.adj");
    plait::check(targets);
    return std::visit([](const auto& rows) -> plait::AnyCsr { return plait::transpose(rows); },
                      targets);
  });
}
