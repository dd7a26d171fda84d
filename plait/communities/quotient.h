// Quotient graphs: one vertex per community of a graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/array.h"
#include "plait/communities/weighted_rows.h"
#include "plait/graph/csr.h"

namespace plait {

// A weighted undirected graph of communities. The edges between two different communities are in
// the rows of both; edges inside one are only in its degree. If the graph is symmetric, an edge
// and its reverse count as one.
struct Quotient {
  std::vector<EdgeOffset> offsets;  // communities + 1
  Buffer<std::uint32_t> neighbours;
  Buffer<std::uint64_t> weights;       // edges between the two
  std::vector<std::uint64_t> degrees;  // edge ends at each community
  std::uint64_t total = 0;             // edge ends in all

  std::uint32_t communities() const { return static_cast<std::uint32_t>(degrees.size()); }
  // Returns the rows of all communities, which point into this.
  WeightedRows rows() const;
};

// Renumbers labels, which are below their number, as 0, 1, ... in ascending order. Returns how many
// there are.
std::uint32_t make_dense(std::span<std::uint32_t> labels);

// Return the quotient by labels from 0 to communities - 1: of a graph, or of rows with weights,
// where labels are by vertex. What a rank's rows give is its part of the quotient: weights and
// degrees are to be added. All threads work; the result does not depend on their number.
Quotient quotient_of(const AnyCsr& graph, bool symmetric, std::span<const std::uint32_t> labels,
                     std::uint32_t communities);
Quotient quotient_of(const WeightedRows& graph, std::span<const std::uint32_t> labels,
                     std::uint32_t communities);

// Returns the sum of parts of some rows of a quotient, which begin with that of community `first`.
// Its degrees and its total are left to the caller.
Quotient sum_of(std::span<const Quotient> parts, std::uint32_t first, std::uint32_t communities);

// Renumbers communities, so that those with edges to others come first; both kinds keep their
// order. The quotient forgets the others.
void put_joined_first(std::span<std::uint32_t> labels, Quotient& graph);

}  // namespace plait
