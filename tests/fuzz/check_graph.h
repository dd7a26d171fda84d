// What every reader of graphs must keep to, whatever the bytes: its result has edges between
// existing vertices alone, or it throws an Error.
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

// Checks what read(bytes) returns.
template <class Read>
int check_reader(const std::uint8_t* data, std::size_t size, Read read) {
  try {
    check(read(std::as_bytes(std::span(data, size))));
  } catch (const Error&) {
  }
  return 0;
}

// The same for read(text).
template <class Read>
int check_text_reader(const std::uint8_t* data, std::size_t size, Read read) {
  return check_reader(data, size, [&](std::span<const std::byte> bytes) {
    return read(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  });
}

}  // namespace plait
