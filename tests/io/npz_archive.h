// Archives of arrays by name, in memory, and the results of npz.h on them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plait/graph/build.h"
#include "plait/graph/validate.h"
#include "plait/io/npz.h"
#include "tests/io/damage.h"
#include "tests/io/npy_file.h"
#include "tests/io/zip_file.h"

namespace plait {

using Int32s = std::vector<std::int32_t>;
using Floats = std::vector<float>;
using Bytes8 = std::vector<std::uint8_t>;

using Arrays = std::map<std::string, std::string>;  // name without .npy -> file

inline std::string archive_of(const Arrays& arrays) {
  std::vector<ZipMember> members;
  for (const auto& [name, file] : arrays) members.push_back({name + ".npy", file});
  return zip_of(members);
}

inline ParsedDataset parse(const std::string& archive) {
  const auto bytes = to_bytes(archive);
  return parse_npz(bytes.span(), "x.npz");
}
inline ParsedDataset parse(const Arrays& arrays) { return parse(archive_of(arrays)); }

// Builds the graph of a parsed archive and validates it, as read_dataset does.
inline Dataset build(ParsedDataset parsed) {
  Dataset dataset = std::move(parsed.dataset);
  dataset.graph = build_csr(std::move(parsed.edges));
  validate(dataset, "x.npz");
  return dataset;
}

// A graph of 4 vertices and 3 edges with everything.
inline Arrays full() {
  return {{"edge_index", file_of<std::int32_t>("<i4", "(2, 3)", {0, 1, 2, 1, 2, 0})},
          {"edge_weight", file_of<float>("<f4", "(3,)", {1, .5, 2})},
          {"x", file_of<float>("<f4", "(4, 2)", {1, 2, 3, 4, 5, 6, 7, 8})},
          {"y", file_of<std::int64_t>("<i8", "(4,)", {0, 2, -1, 1})},
          {"train", file_of<std::int32_t>("<i4", "(1,)", {2})},
          {"val", file_of<std::int32_t>("<i4", "(0,)", {})},
          {"test", file_of<std::int32_t>("<i4", "(2,)", {3, 0})},
          {"original_ids", file_of<std::uint64_t>("<u8", "(4,)", {10, 20, 30, ~0ull})}};
}

inline Arrays edges_alone() { return {{"edge_index", full().at("edge_index")}}; }

inline Arrays with(Arrays arrays, const std::string& key, const std::string& file) {
  arrays[key] = file;
  return arrays;
}

// Graphs 0 (vertices 0, 2), 1 (1), 2 (3).
inline Arrays graphs() {
  return with(with(edges_alone(), "graph_id", file_of<std::int32_t>("<i4", "(4,)", {0, 1, 0, 2})),
              "y", file_of<std::int32_t>("<i4", "(3,)", {5, -1, 0}));
}

}  // namespace plait
