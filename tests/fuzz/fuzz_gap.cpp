// The reader of the GAP suite's serialised graphs.
#include "plait/io/gap.h"
#include "tests/fuzz/check_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plait::GapWeights weights{size % 2 == 0};
  return plait::check_reader(data, size, [&](std::span<const std::byte> bytes) {
    return plait::parse_gap(bytes, "fuzz.sg", weights).graph;
  });
}
