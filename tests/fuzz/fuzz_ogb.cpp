// The parts of an OGB folder: whatever the bytes, gunzip returns at most 1032 times as many or
// throws an Error, and so do tables of numbers, which are as large as they say.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "plait/base/error.h"
#include "plait/io/gzip.h"
#include "plait/io/ogb.h"

namespace {

template <class Read>
void try_to(Read read) {
  try {
    read();
  } catch (const plait::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_to([&] {
    const auto content = plait::gunzip(std::as_bytes(std::span(data, size)), "fuzz.gz");
    if (content.size() > 1032 * size) std::abort();
  });
  try_to([&] {
    const plait::NpyMatrix matrix = plait::parse_number_table(text, "fuzz.csv");
    if (matrix.values.size() != matrix.rows * matrix.width) std::abort();
  });
  try_to([&] {
    for (const std::uint64_t number : plait::parse_number_lines(text, "fuzz.csv", 100))
      if (number > 100) std::abort();
  });
  return 0;
}
