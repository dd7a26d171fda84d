// Whatever the bytes, the reader of safetensors returns arrays that fit their shapes, or throws an
// Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "plait/base/error.h"
#include "plait/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const plait::TensorFile file =
        plait::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
    for (const plait::NamedTensor& tensor : file.tensors) {
      std::uint64_t product = 1;
      for (const std::int64_t extent : tensor.shape) product *= static_cast<std::uint64_t>(extent);
      if (product != tensor.values.size()) std::abort();
    }
  } catch (const plait::Error&) {
  }
  return 0;
}
