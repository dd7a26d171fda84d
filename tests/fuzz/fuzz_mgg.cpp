// The reader of MGG's three files: the first two bytes say where the rest is cut into them.
#include "plait/io/mgg.h"
#include "tests/fuzz/check_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t first = data[0], second = data[1];
  return plait::check_reader(data + 2, size - 2, [&](std::span<const std::byte> bytes) {
    const auto offsets = bytes.first(std::min(first, bytes.size()));
    const auto rest = bytes.subspan(offsets.size());
    const auto neighbours = rest.first(std::min(second, rest.size()));
    return plait::parse_mgg({offsets, neighbours, rest.subspan(neighbours.size())}, "fuzz").graph;
  });
}
