// The local moves of the Louvain method (Blondel, Guillaume, Lambiotte and Lefebvre, "Fast
// unfolding of communities in large networks", Journal of Statistical Mechanics, 2008): vertices,
// each in a community of its own at first, move to the community of a neighbour where modularity
// gains the most, in rounds, until few move.
//
// Either vertices move one after the other, or, in large graphs, about a quarter of them at once,
// chosen by a hash, so that all threads and ranks work and their number does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plait/communities/quotient.h"

namespace plait {

// A graph is large from this number of entries on: a GPU is then worth that moves at the same time
// are a little worse. Threads are worth their meetings in graphs that are larger still.
inline constexpr EdgeOffset kLargeQuotient = EdgeOffset{1} << 15;

// A vertex and the label of the community that it moves to.
struct Move {
  std::uint32_t vertex, label;
};
// Collective. Returns the moves of all ranks, which each gives its own.
using ShareMoves = std::function<std::vector<Move>(const std::vector<Move>&)>;

struct MoveRules {
  // The factor of the edges by chance in modularity. 1 is Newman's, and a lower one makes larger
  // communities.
  double resolution = 1;
  bool at_once = false;  // a quarter of the vertices moves at once; on GPUs always
  // From the second round on, only neighbours of vertices that have moved in the round before look
  // for a better community.
  bool only_woken = false;
  // Vertices may also leave their community to be alone, under the label of their number, if no
  // community has it: so communities that are begun with can fall apart. Not in a refinement.
  bool may_leave = false;
  // The least share of `movable` vertices that moves in each round but the last.
  double least_share = 0.005;
  // The vertices of all ranks that have a neighbour; 0: all vertices count.
  std::uint64_t movable = 0;
  // The community in which each vertex begins, as labels below `count`, in memory of the device;
  // null: each in its own, labelled by its number.
  const std::uint32_t* start = nullptr;
  // Refinement (Traag, Waltman and van Eck, "From Louvain to Leiden", Scientific Reports 9, 2019):
  // a label per vertex, in memory of the device; or null. Vertices move only to communities within
  // the same label, only as long as they are alone in theirs, and to one of a single vertex only if
  // that vertex does not move at the same time: so communities are connected.
  const std::uint32_t* within = nullptr;
  // Needed if rows are not those of all vertices; moves are made at once then.
  ShareMoves share;
};

// Returns a label per vertex: those with the same label are in one community. Throws
// DoesNotFitError.
std::vector<std::uint32_t> local_moves(const WeightedRows& graph, const MoveRules& rules);

// The same for all communities of a quotient, which are to be merged. It is large from `large`
// entries on.
std::vector<std::uint32_t> merge(const Quotient& graph, double resolution,
                                 EdgeOffset large = kLargeQuotient);

// Returns the modularity of the communities; Newman's, if the resolution is 1.
double modularity_of(const Quotient& graph, double resolution = 1);
// Does so from each community's edge ends, its ends of edges to other communities, and all ends.
double modularity_of(std::span<const std::uint64_t> degrees, std::span<const std::uint64_t> outer,
                     std::uint64_t ends, double resolution = 1);

}  // namespace plait
