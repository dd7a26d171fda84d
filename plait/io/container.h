// The .plait container: a dataset as its arrays lie in memory, so that a file is mapped, not read.
//
// All numbers are little-endian. A file is a header, then one section per array. Each section
// begins at the next multiple of 64 bytes after the part before it; the bytes between are zero. The
// file ends with its last section.
//
//   header
//     byte  type  content
//        0  8 u8  mark: 89 50 4C 41 49 54 0D 0A (\x89 PLAIT CR LF)
//        8  u32   version: 3 or 2 if the file has parts that earlier ones lack (marked so below),
//                 else 1
//       12  u32   bytes of the header, to the end of the name
//       16  u64   bytes of the file
//       24  u64   XXH3 (64 bit) of the header with this field 0
//       32  u64   vertices
//       40  u64   edges
//       48  u64   feature width, 0 without features
//       56  u32   classes
//       60  u32   number of splits
//       64  u32   flags: 1 = symmetric: every edge has its reverse, of the same weight; others 0
//       68  u32   number of sections
//       72  u32   bytes of the name
//       76  u32   graphs in a set of graphs, else 0 (2)
//       80        the section table, 32 bytes per section, in the order of the sections:
//                   0  u32  kind
//                   4  u32  element type
//                   8  u64  offset of its beginning in the file
//                  16  u64  bytes
//                  24  u64  XXH3 (64 bit) of its bytes
//     then        the name, UTF-8 without control characters
//
//   kind                   element type   number of elements
//      1 offsets             4 u64          vertices + 1
//      2 neighbours          3 u32, 4 u64   edges
//      3 edge weights        5 f32          edges
//      4 features            5 f32, 6 bf16  vertices x width, row major
//      5 feature offsets     4 u64          vertices + 1
//      6 feature columns     3 u32          any, n
//      7 feature values      5 f32          n
//      8 labels              2 i32          examples
//      9 splits              1 u8           splits x examples
//     10 original ids        4 u64          vertices
//     11 label sets          1 u8           examples x classes (2)
//     12 graph ids           3 u32          vertices (2)
//     13 numbers             4 u64          vertices (3)
//
// Sections come in the order of their kinds, each at most once. Offsets and neighbours are always
// there; the neighbours of a row ascend. Features are either section 4 or sections 5, 6 and 7.
// Examples are the graphs of a set of graphs, else vertices. Numbers are a permutation of the
// vertices. Dataset and its parts say what the arrays mean.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plait/base/file.h"
#include "plait/graph/dataset.h"

namespace plait {

inline constexpr std::string_view kContainerMark{"\x89PLAIT\r\n", 8};

// Returns the dataset whose arrays view `bytes` and keep `owner`, who holds them (aligned to 8
// bytes). The writer is not trusted: the header, the checksums and the padding are checked, then
// all content by validate(), and by is_symmetric() if the file claims symmetry. Code that uses the
// result may rely on all this. Throws InputError.
Dataset read_container(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                       const std::string& file);

// Writes array after array, without a copy of any. The caller commits the file.
void write_container(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
