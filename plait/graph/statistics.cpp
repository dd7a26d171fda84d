#include "plait/graph/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"

namespace plait {
namespace {

std::vector<EdgeOffset> degrees_of(const AnyCsr& any) {
  return std::visit(
      [](const auto& graph) {
        std::vector<EdgeOffset> degrees(graph.vertices());
        parallel_blocks(degrees.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) degrees[i] = graph.degree(i);
        });
        return degrees;
      },
      any);
}

// Moves the element of rank `rank`, in ascending order, to its place, and returns it.
EdgeOffset of_rank(std::vector<EdgeOffset>& values, std::size_t rank) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// place(v) is the id of vertex v.
double span_of(const AnyCsr& any, auto place) {
  return std::visit(
      [&](const auto& graph) {
        if (graph.edges() == 0) return 0.0;
        // Distances are whole numbers; a block of rows of the largest graph (2^44 vertices and 2^44
        // edges in all) may exceed 64 bits, so blocks are summed as floating point numbers.
        std::vector<double> sums((graph.vertices() + kRowGrain - 1) / kRowGrain);
        parallel_blocks(graph.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
          double sum = 0;
          for (std::uint64_t i = begin; i < end; ++i) {
            std::uint64_t of_row = 0;
            const std::uint64_t here = place(i);
            for (const std::uint64_t j : graph.row(i)) {
              const std::uint64_t there = place(j);
              of_row += here > there ? here - there : there - here;
            }
            sum += static_cast<double>(of_row);
          }
          sums[begin / kRowGrain] = sum;
        });
        return std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(graph.edges());
      },
      any);
}

}  // namespace

DegreeStatistics degree_statistics(const AnyCsr& graph) {
  std::vector<EdgeOffset> degrees = degrees_of(graph);
  const std::size_t vertices = degrees.size();
  const EdgeOffset edges = edge_count(graph);
  DegreeStatistics found;
  if (vertices == 0) return found;
  found.mean = static_cast<double>(edges) / static_cast<double>(vertices);
  found.without_edges = static_cast<std::uint64_t>(std::ranges::count(degrees, EdgeOffset{0}));
  found.median = of_rank(degrees, (vertices - 1) / 2);
  // The smallest degree that at least 99% of the vertices do not exceed.
  found.percentile_99 = of_rank(degrees, vertices - 1 - vertices / 100);
  const std::size_t top = (vertices + 99) / 100;
  of_rank(degrees, vertices - top);
  const auto most = degrees.end() - static_cast<std::ptrdiff_t>(top);
  found.largest = *std::max_element(most, degrees.end());
  const EdgeOffset of_top = std::accumulate(most, degrees.end(), EdgeOffset{0});
  if (edges > 0) found.top_percent_share = static_cast<double>(of_top) / static_cast<double>(edges);
  return found;
}

double averaged_edge_span(const AnyCsr& graph) {
  return span_of(graph, [](std::uint64_t v) { return v; });
}

double averaged_edge_span(const AnyCsr& graph, std::span<const std::uint64_t> places) {
  return span_of(graph, [&](std::uint64_t v) { return places[v]; });
}

bool is_above_span_bound(double averaged_edge_span, std::uint64_t vertices) {
  return std::sqrt(averaged_edge_span) > std::floor(std::sqrt(static_cast<double>(vertices)) / 100);
}

}  // namespace plait
