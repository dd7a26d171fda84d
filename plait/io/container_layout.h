// The parts of a .plait file as structs, for its reader and its writer; container.h says what they
// mean.
#pragma once

#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

#include "plait/base/bf16.h"
#include "plait/graph/dataset.h"

namespace plait::container {

static_assert(std::endian::native == std::endian::little, "arrays are used as they lie in files");

inline constexpr std::uint32_t kVersion = 3;  // the latest
inline constexpr std::uint32_t kSymmetric = 1;
inline constexpr std::uint64_t kAlignment = 64;
inline constexpr std::size_t kLongestName = 4096;

// The header of a file, as it lies there.
struct Header {
  char mark[8] = {};
  std::uint32_t version = 1;
  std::uint32_t header_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t checksum = 0;
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
  std::uint64_t width = 0;
  std::uint32_t classes = 0;
  std::uint32_t split_count = 0;
  std::uint32_t flags = 0;
  std::uint32_t section_count = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t graphs = 0;
};
static_assert(sizeof(Header) == 80 && std::has_unique_object_representations_v<Header>);

// The kind of a section.
enum class Kind : std::uint32_t {
  offsets = 1,
  neighbours,
  weights,
  features,
  feature_offsets,
  feature_columns,
  feature_values,
  labels,
  splits,
  original_ids,
  label_sets,
  graph_ids,
  numbers,
};
inline constexpr std::uint32_t kKinds = 13;
inline constexpr const char* kKindNames[kKinds + 1] = {
    "",          "offsets",         "neighbours",      "edge weights",
    "features",  "feature offsets", "feature columns", "feature values",
    "labels",    "splits",          "original ids",    "label sets",
    "graph ids", "numbers"};
// Returns the number of kinds that a version knows: 1 to this.
constexpr std::uint32_t kinds_of(std::uint32_t version) {
  return version >= 3 ? kKinds : version == 2 ? 12 : 10;
}

// The element type of a section.
enum class Element : std::uint32_t { u8 = 1, i32, u32, u64, f32, bf16 };
// Returns a name for messages, for any number that a file holds.
constexpr const char* name_of(Element element) {
  constexpr const char* kNames[] = {"u8", "i32", "u32", "u64", "f32", "bf16"};
  const auto place = static_cast<std::uint32_t>(element) - 1;
  return place < std::size(kNames) ? kNames[place] : "a type that is not known";
}

// Returns the element type of arrays of T.
template <class T>
constexpr Element element_of() {
  if constexpr (std::is_same_v<T, Split> || std::is_same_v<T, std::uint8_t>) return Element::u8;
  if constexpr (std::is_same_v<T, std::int32_t>) return Element::i32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return Element::u32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return Element::u64;
  if constexpr (std::is_same_v<T, float>) return Element::f32;
  if constexpr (std::is_same_v<T, BFloat16>) return Element::bf16;
}

// One row of the section table, as it lies in the file.
struct Section {
  Kind kind{};
  Element element{};
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Section) == 32 && std::has_unique_object_representations_v<Section>);

using Bytes = std::span<const std::byte>;

// Returns where the section after `end` begins. `end` is at most 2^63.
constexpr std::uint64_t aligned(std::uint64_t end) {
  return (end + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace plait::container
