// A checksum of edges in their order, for tests that a generator makes the same ones everywhere.
#pragma once

#include <cstdint>
#include <variant>

#include "plait/graph/edge_list.h"

namespace plait::test {

// Returns FNV-1a over the ids.
inline std::uint64_t checksum(const AnyEdgeList& any) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](std::uint64_t id) { hash = (hash ^ id) * 0x100000001b3u; };
  std::visit(
      [&](const auto& list) {
        for (std::size_t e = 0; e < list.edges(); ++e) add(list.source[e]), add(list.target[e]);
      },
      any);
  return hash;
}

}  // namespace plait::test
