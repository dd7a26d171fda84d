// The rule for every reader of graphs, whatever the bytes: its result has edges between existing
// vertices alone, or it throws an Error. The work that follows a reader is run on the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "plait/base/error.h"
#include "plait/graph/csr.h"
#include "plait/graph/edge_list.h"
#include "tests/fuzz/operate.h"

namespace plait {

inline void check(const AnyEdgeList& any) {
  std::visit(
      [](const auto& list) {
        for (std::size_t e = 0; e < list.edges(); ++e)
          if (list.source[e] >= list.vertices || list.target[e] >= list.vertices) std::abort();
        for (const float weight : list.weight)
          if (!std::isfinite(weight)) std::abort();
      },
      any);
}

inline void check(const AnyCsr& any) {
  std::visit(
      [](const auto& graph) {
        if (graph.offsets.empty() || graph.offsets[0] != 0 ||
            graph.offsets.back() != graph.edges() ||
            !std::is_sorted(graph.offsets.begin(), graph.offsets.end()))
          std::abort();
        for (const auto neighbour : graph.neighbours)
          if (neighbour >= graph.vertices()) std::abort();
        for (const float weight : graph.weights)
          if (!std::isfinite(weight)) std::abort();
      },
      any);
}

inline AnyCsr graph_of(AnyEdgeList edges) { return build_csr(std::move(edges)); }
inline AnyCsr graph_of(AnyCsr rows) { return rows; }

// Tells whether a graph is right but takes more memory or time than a fuzzer has. A graph that is
// larger still is worked on: building it has to be refused.
inline bool is_too_large(const AnyEdgeList& edges) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 22, kRefused = std::uint64_t{1} << 44;
  return std::visit(
      [](const auto& list) { return list.vertices > kMost && list.vertices < kRefused; }, edges);
}
inline bool is_too_large(const AnyCsr&) { return false; }  // a file has all of its rows

// Checks the result of read(bytes), and works with it.
template <class Read>
int check_reader(const std::uint8_t* data, std::size_t size, Read read) {
  Dataset dataset;
  try {
    auto content = read(std::as_bytes(std::span(data, size)));
    check(content);
    if (is_too_large(content)) return 0;
    dataset.graph = graph_of(std::move(content));
    validate(dataset, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  dataset.symmetric = is_symmetric(dataset.graph);
  Chooser choose(data, size);
  operate(dataset, choose);
  return 0;
}

// Does the same for read(text).
template <class Read>
int check_text_reader(const std::uint8_t* data, std::size_t size, Read read) {
  return check_reader(data, size, [&](std::span<const std::byte> bytes) {
    return read(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  });
}

}  // namespace plait
