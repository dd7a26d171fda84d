// Whatever the bytes, the reader of .npy returns edges between existing vertices, or finite numbers
// as many as the shape says, or throws an Error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "plait/base/error.h"
#include "plait/io/npy.h"
#include "tests/fuzz/check_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const plait::NpyArray array =
        plait::parse_npy(std::as_bytes(std::span(data, size)), "fuzz.npy");
    if (array.type.kind == 'f') {
      const plait::NpyMatrix matrix = plait::npy_matrix(array, nullptr);
      if (matrix.values.size() != matrix.rows * matrix.width) std::abort();
      for (const float value : matrix.values)
        if (!std::isfinite(value)) std::abort();
    } else {
      plait::check(plait::npy_edges(array));
    }
  } catch (const plait::Error&) {
  }
  return 0;
}
