// Whatever a .plait file holds, with right checksums: it is refused, or all that Plait does with a
// graph that it has read stays within its arrays.
#include "tests/fuzz/hostile_container.h"
#include "tests/fuzz/operate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plait::Chooser choose(data, size);
  if (const auto dataset = plait::read_hostile(choose)) plait::operate(*dataset, choose);
  return 0;
}
