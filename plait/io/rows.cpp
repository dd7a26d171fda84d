#include "plait/io/rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/graph/build.h"
#include "plait/graph/validate.h"
#include "plait/io/edges_of_csr.h"

namespace plait {
NpyArray raw_array(std::span<const std::byte> bytes, const RawArray& array,
                   const std::string& name) {
  const std::uint64_t size = bytes.size();
  if (array.begin > size || array.count > (size - array.begin) / array.type.size)
    throw InputError(name, fmt::format("byte {}", array.begin),
                     fmt::format("{} elements of {} bytes are promised where {} bytes follow",
                                 array.count, array.type.size, size - std::min(array.begin, size)),
                     "get the whole file");
  return {.type = array.type,
          .shape = {array.count},
          .data = bytes.subspan(array.begin, array.count * array.type.size),
          .name = name};
}

void require_rising(std::span<const EdgeOffset> offsets, std::uint64_t entries,
                    const std::string& file) {
  constexpr auto kRemedy = "write the file anew";
  if (offsets.front() != 0)
    throw InputError(file, "offset of vertex 0", fmt::format("{} is not 0", offsets.front()),
                     kRemedy);
  const auto fall = std::adjacent_find(offsets.begin(), offsets.end(), std::greater<>());
  if (fall != offsets.end())
    throw InputError(file, fmt::format("offset of vertex {}", fall - offsets.begin() + 1),
                     fmt::format("{} is below the one before, {}", fall[1], fall[0]), kRemedy);
  if (offsets.back() != entries)
    throw InputError(file, "end of the last vertex",
                     fmt::format("{} is not the number of edges, {}", offsets.back(), entries),
                     kRemedy);
}

AnyCsr with_sorted_rows(AnyCsr any) {
  return std::visit(
      [](auto& graph) -> AnyCsr {
        if (rows_are_sorted(graph)) return std::move(graph);
        return build_csr(edges_of(graph));
      },
      any);
}

void require_symmetric(const AnyCsr& graph, const std::string& file) {
  const auto edge = find_one_way_edge(graph);
  if (!edge) return;
  throw InputError(file, fmt::format("vertex {}", edge->row),
                   fmt::format("its edge to vertex {} (counted from 0) has no reverse of the same "
                               "weight in an undirected graph",
                               edge->neighbour),
                   "list each edge at both of its ends");
}

AnyCsr out_rows(const Dataset& dataset) {
  if (dataset.symmetric) return dataset.graph;
  return std::visit([](const auto& graph) -> AnyCsr { return transpose(graph); }, dataset.graph);
}

void require_whole_weights(const AnyCsr& any, std::int64_t low, std::int64_t high,
                           const std::string& file) {
  std::visit(
      [&](const auto& graph) {
        // The comparison is in double precision, in which both bounds are exact.
        const auto fits = [&](double w) {
          return w == std::floor(w) && w >= static_cast<double>(low) &&
                 w <= static_cast<double>(high);
        };
        const auto wrong = std::find_if_not(graph.weights.begin(), graph.weights.end(), fits);
        if (wrong == graph.weights.end()) return;
        const auto e = static_cast<EdgeOffset>(wrong - graph.weights.begin());
        const auto row = std::upper_bound(graph.offsets.begin(), graph.offsets.end(), e) - 1;
        throw Error(fmt::format(
            "{}: weight {} of the edge from vertex {} to {} is not a whole number in {}..{}, which "
            "is what the format can hold; use {} or another format",
            file, *wrong, graph.neighbours[e], row - graph.offsets.begin(), low, high,
            setting("no-weights")));
      },
      any);
}

}  // namespace plait
