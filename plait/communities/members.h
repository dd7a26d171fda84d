// The vertices of each label.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/array.h"

namespace plait {

// The members of label c are vertices[begin[c]] .. vertices[begin[c + 1] - 1], ascending.
template <class Vertex>
struct MembersOf {
  std::vector<std::uint32_t> begin;
  Buffer<Vertex> vertices;
};
using Members = MembersOf<std::uint32_t>;

// Sorts vertices by labels 0 .. count - 1: label_of(v) is that of v, of fewer than 2^32 vertices.
template <class Vertex>
MembersOf<Vertex> members_of(std::uint32_t vertices, std::uint32_t count, auto&& label_of) {
  // While vertices are sorted, begin[c + 1] is the place of the next one of label c.
  MembersOf<Vertex> members{std::vector<std::uint32_t>(count + std::size_t{2}),
                            Buffer<Vertex>(vertices)};
  std::uint32_t* const begin = members.begin.data();
  for (std::uint32_t v = 0; v < vertices; ++v) ++begin[label_of(v) + std::size_t{2}];
  for (std::size_t c = 2; c < count + std::size_t{1}; ++c) begin[c] += begin[c - 1];
  Vertex* const to = members.vertices.data();
  for (std::uint32_t v = 0; v < vertices; ++v) to[begin[label_of(v) + std::size_t{1}]++] = v;
  members.begin.pop_back();
  return members;
}

// Sorts vertices by their labels, which are below `count`. Vertices of one label ascend.
inline Members members_of(std::span<const std::uint32_t> labels, std::uint32_t count) {
  return members_of<std::uint32_t>(static_cast<std::uint32_t>(labels.size()), count,
                                   [&](std::uint32_t v) { return labels[v]; });
}

}  // namespace plait
