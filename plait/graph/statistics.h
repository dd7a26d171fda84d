// Numbers that describe a graph's shape, from which a runtime chooses how to compute on it: the
// graph part of GNNAdvisor's input extractor (Wang et al., OSDI 2021, section 3.1).
#pragma once

#include <cstdint>
#include <span>

#include "plait/graph/csr.h"

namespace plait {

// The degrees of a graph: numbers of edges that lead to a vertex.
struct DegreeStatistics {
  double mean = 0;  // 0 without vertices
  EdgeOffset median = 0;
  EdgeOffset percentile_99 = 0;  // at least 99% of the vertices have at most so many
  EdgeOffset largest = 0;
  std::uint64_t without_edges = 0;  // vertices
  // The part of the edges that lead to the 1% of the vertices with the most, rounded up: 0.01 if
  // all degrees are equal and 1 for a star.
  double top_percent_share = 0;

  friend bool operator==(const DegreeStatistics&, const DegreeStatistics&) = default;
};

// Looks at every row's length, by all threads.
DegreeStatistics degree_statistics(const AnyCsr& graph);

// Returns the averaged edge span: the mean, over the edges, of the distance between the ids of the
// two ends (GNNAdvisor, section 5.1). 0 without edges. Looks at every edge, by all threads; the
// result does not depend on their number.
double averaged_edge_span(const AnyCsr& graph);

// Returns the averaged edge span that the graph would have if vertex v had the id places[v].
double averaged_edge_span(const AnyCsr& graph, std::span<const std::uint64_t> places);

// Returns whether it is worth looking for other ids of `vertices` vertices: whether the square root
// of the averaged edge span is above floor(sqrt(vertices) / 100) (GNNAdvisor, section 5.1).
// is_scattered() of reorder/scattered.h tells whether closer ones are found.
bool is_above_span_bound(double averaged_edge_span, std::uint64_t vertices);

}  // namespace plait
