// The safetensors format: named arrays and text metadata, readable by the safetensors package of
// Python without running any code. A file is
//   8 bytes   length of the header, little-endian; at most 100,000,000, as in Python's package
//   header    JSON: {"__metadata__": {text: text}, NAME: {"dtype": "F32", "shape": [...],
//             "data_offsets": [begin, end]}, ...}, offsets counted from the end of the header
//   data      the arrays, row major, back to back
//
// Files that are written here have "checksum" among their metadata: XXH3 (64 bit) of the content,
// however it is laid out, in 16 hexadecimal digits. It is the checksum of the JSON text, with names
// in order and without blanks, of
//   {"metadata": {text: text}, "tensors": {NAME: {"checksum": of its bytes, "shape": [...]}, ...}}
// where "checksum" itself is left out of the metadata.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/file.h"

namespace plait {

// One array, row major.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  Array<float> values;
};

// The content of a file.
struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<NamedTensor> tensors;

  // Returns the array of this name, or null if there is none.
  const NamedTensor* find(const std::string& name) const;
};

inline constexpr std::uint64_t kLargestHeader = 100'000'000;  // bytes
inline constexpr const char* kChecksumKey = "checksum";       // of the metadata

// Read a file. Only float32 ("F32") is read. Throw InputError for anything that is not as above:
// lengths past the end, shapes that do not match, arrays that overlap or leave gaps, and a checksum
// of other content. No array is copied before all of the header is right, so that the memory taken
// is bounded by the size of the file.
TensorFile parse_safetensors(std::span<const std::byte> bytes, const std::string& file);
TensorFile read_safetensors(const std::string& path);
// Writes a file, whole or not at all, with its checksum. Throws Error.
void write_safetensors(const TensorFile& tensors, const std::string& path);

}  // namespace plait
