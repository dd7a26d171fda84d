// Numbers that name things in a graph.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace plait {

// A position in the list of all edges. Always 64 bit: real graphs pass 2^31 edges.
using EdgeOffset = std::uint64_t;

// A vertex: 32 bit where all ids fit, which halves the bytes of a neighbour list, else 64 bit.
template <class T>
concept VertexId = std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>;

// A row in a rank's memory: its own rows first, the halo after.
using Slot = std::uint32_t;

// The number of vertices up to which 32-bit ids serve. The largest value stays free as a mark.
inline constexpr std::uint64_t kMaxVertices32 = std::numeric_limits<std::uint32_t>::max();

}  // namespace plait
