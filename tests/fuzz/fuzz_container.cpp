// Whatever the bytes, the reader of .plait returns a valid dataset, on which all that follows can
// rely, or throws an Error.
//
// Checksums that a fuzzer cannot guess are put right first, and so are the mark, the version and
// the size of the file, so that what lies behind them is reached; every second input is left as it
// is.
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/graph/validate.h"
#include "plait/io/container.h"
#include "plait/io/container_layout.h"
#include "tests/fuzz/operate.h"

namespace {

using plait::container::Header;
using plait::container::Section;

void repair(plait::Buffer<std::byte>& bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.mark, plait::kContainerMark.data(), sizeof header.mark);
  header.version = 1 + header.version % plait::container::kVersion;
  header.file_bytes = bytes.size();
  header.section_count %= plait::container::kKinds + 1;
  header.name_bytes %= 8;
  header.header_bytes = static_cast<std::uint32_t>(
      sizeof(Header) + header.section_count * sizeof(Section) + header.name_bytes);
  if (header.header_bytes > bytes.size()) return;
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    std::byte* const place = bytes.data() + sizeof(Header) + i * sizeof(Section);
    Section section;
    std::memcpy(&section, place, sizeof section);
    if (section.begin > bytes.size() || section.bytes > bytes.size() - section.begin) continue;
    section.checksum = XXH3_64bits(bytes.data() + section.begin, section.bytes);
    std::memcpy(place, &section, sizeof section);
  }
  header.checksum = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  header.checksum = XXH3_64bits(bytes.data(), header.header_bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plait::Buffer<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  if (size >= sizeof(Header) && data[24] % 2 == 0) repair(bytes);
  plait::Dataset dataset;
  try {
    dataset = plait::read_container(nullptr, bytes.span(), "fuzz.plait");
  } catch (const plait::Error&) {
    return 0;
  }
  plait::validate(dataset, "fuzz.plait");
  plait::Chooser choose(data, size);
  plait::operate(dataset, choose);
  return 0;
}
