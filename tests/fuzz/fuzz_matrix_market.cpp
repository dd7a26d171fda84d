// Whatever the bytes, the Matrix Market reader returns edges between existing vertices or throws
// an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plait/base/error.h"
#include "plait/io/matrix_market.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    std::visit(
        [](const auto& list) {
          for (std::size_t e = 0; e < list.edges(); ++e)
            if (list.source[e] >= list.vertices || list.target[e] >= list.vertices) std::abort();
        },
        plait::parse_matrix_market({reinterpret_cast<const char*>(data), size}, "fuzz.mtx"));
  } catch (const plait::Error&) {
  }
  return 0;
}
