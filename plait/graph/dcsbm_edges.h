// The edges of the block model: which pairs of vertices are drawn. Internal to dcsbm.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/graph/dcsbm.h"
#include "plait/graph/edge_list.h"

namespace plait::dcsbm {

// The upper half of a counter says what is drawn, the lower one for which vertex, draw, ...
enum Stream : std::uint64_t {
  kWeightStream = std::uint64_t{16} << 56,
  kInnerStream = std::uint64_t{17} << 56,
  kLeavingStream = std::uint64_t{18} << 56,
  kMeanStream = std::uint64_t{19} << 56,
  kNoiseStream = std::uint64_t{20} << 56,
  kIdStream = std::uint64_t{21} << 56,
  kSplitStream = std::uint64_t{22} << 56,
};

// Before ids are shuffled, community c is the vertices starts[c] .. starts[c + 1] - 1, in ascending
// order of size.
std::vector<std::uint64_t> community_starts(std::uint64_t vertices, std::uint64_t communities);

// Numbers of pairs of different vertices, inside communities and between them.
struct Pairs {
  std::uint64_t inner = 0;
  std::uint64_t leaving = 0;
};

Pairs possible_pairs(std::span<const std::uint64_t> starts);
Pairs wanted_pairs(const DcsbmOptions& options);

// Edges u -> v, one direction of each, under their final ids: ids[v] is that of the v-th vertex
// before the shuffle. Throws Error when free pairs are hardly found any more.
EdgeList<std::uint32_t> draw_edges(const DcsbmOptions& options,
                                   std::span<const std::uint64_t> starts,
                                   std::span<const std::uint32_t> ids);
// Bytes that draw_edges takes for so many pairs, its result included.
std::uint64_t drawing_bytes(std::uint64_t pairs);

}  // namespace plait::dcsbm
