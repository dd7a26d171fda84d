// The edges of the block model: the pairs of vertices that are drawn. Internal to dcsbm.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/graph/dcsbm.h"
#include "plait/graph/edge_list.h"

namespace plait::dcsbm {

// The upper half of a counter names the kind of number that is drawn; the lower half holds the
// vertex, the draw, and so on.
enum Stream : std::uint64_t {
  kWeightStream = std::uint64_t{16} << 56,
  kInnerStream = std::uint64_t{17} << 56,
  kLeavingStream = std::uint64_t{18} << 56,
  kIdStream = std::uint64_t{21} << 56,
};

// Returns communities + 1 starts: before ids are shuffled, community c is the vertices starts[c] ..
// starts[c + 1] - 1, in ascending order of size.
std::vector<std::uint64_t> community_starts(std::uint64_t vertices, std::uint64_t communities);

// Numbers of pairs of different vertices, inside communities and between them.
struct Pairs {
  std::uint64_t inner = 0;
  std::uint64_t leaving = 0;
};

// Return the numbers of pairs that communities with these starts have, and that options ask for.
Pairs possible_pairs(std::span<const std::uint64_t> starts);
Pairs wanted_pairs(const DcsbmOptions& options);

// Returns edges u -> v, one direction of each, under their final ids: ids[v] is the id of the v-th
// vertex before the shuffle. Throws Error if free pairs are hardly found any more.
EdgeList<std::uint32_t> draw_edges(const DcsbmOptions& options,
                                   std::span<const std::uint64_t> starts,
                                   std::span<const std::uint32_t> ids);
// Returns the bytes that draw_edges takes for so many pairs of so many vertices, its result
// included.
std::uint64_t drawing_bytes(std::uint64_t pairs, std::uint64_t vertices);

}  // namespace plait::dcsbm
