// Whatever the bytes, the reader of .plait returns a valid dataset, on which all later work can
// rely, or throws an Error.
//
// Parts that a fuzzer cannot guess are put right first: the mark, the version, the places of
// sections, the lengths of sections that tell of vertices and edges, the size of the file and all
// checksums, so that the checks behind them are reached. Every second input is left as it is.
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/graph/validate.h"
#include "plait/io/container.h"
#include "plait/io/container_layout.h"
#include "tests/fuzz/operate.h"

namespace {

using plait::container::Element;
using plait::container::Header;
using plait::container::Kind;
using plait::container::Section;

// By kind.
constexpr Element kElements[] = {Element{},    Element::u64, Element::u32, Element::f32,
                                 Element::f32, Element::u64, Element::u32, Element::f32,
                                 Element::i32, Element::u8,  Element::u64, Element::u8,
                                 Element::u32, Element::u64};

// Puts the sections one behind the other, as far as there are bytes, in the order of their kinds.
// Returns where the last one ends.
std::size_t place_sections(plait::Buffer<std::byte>& bytes, Header& header) {
  std::uint64_t end = header.header_bytes;
  std::uint32_t kind = 0;
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    std::byte* const place = bytes.data() + sizeof(Header) + i * sizeof(Section);
    Section section;
    std::memcpy(&section, place, sizeof section);
    section.begin = plait::container::aligned(end);
    if (section.begin > bytes.size()) break;
    std::memset(bytes.data() + end, 0, section.begin - end);
    kind += 1 + (i < 2 ? 0 : static_cast<std::uint32_t>(section.kind) % 3);
    section.kind = Kind{kind};
    if (section.element > Element::bf16 && kind < std::size(kElements))
      section.element = kElements[kind];
    section.bytes =
        std::min<std::uint64_t>(section.bytes % 128 / 8 * 8, bytes.size() - section.begin);
    if (section.kind == Kind::offsets) header.vertices = section.bytes / 8 - 1;
    if (section.kind == Kind::neighbours)
      header.edges = section.bytes / (section.element == Element::u64 ? 8 : 4);
    end = section.begin + section.bytes;
    section.checksum = XXH3_64bits(bytes.data() + section.begin, section.bytes);
    std::memcpy(place, &section, sizeof section);
  }
  return end;
}

void repair(plait::Buffer<std::byte>& bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.mark, plait::kContainerMark.data(), sizeof header.mark);
  header.version = 1 + header.version % plait::container::kVersion;
  header.section_count %= plait::container::kKinds + 1;
  header.name_bytes %= 8;
  header.width %= 8;
  header.classes %= 8;
  header.split_count %= 4;
  header.flags %= 2;
  header.graphs %= header.version;  // version 1 knows none
  header.header_bytes = static_cast<std::uint32_t>(
      sizeof(Header) + header.section_count * sizeof(Section) + header.name_bytes);
  if (header.header_bytes > bytes.size()) return;
  bytes.truncate(place_sections(bytes, header));
  header.file_bytes = bytes.size();
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
