#include "plait/io/left_out.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "plait/base/names.h"

namespace plait {
namespace {

// Returns the number of vertices that no edge touches: of all, or of those after the last that one
// touches.
template <VertexId V>
std::uint64_t vertices_without_edges(const Csr<V>& graph, bool only_last) {
  std::vector<bool> touched(graph.vertices());
  for (std::uint64_t v = 0; v < graph.vertices(); ++v)
    if (graph.degree(v) > 0) touched[v] = true;
  for (const V neighbour : graph.neighbours) touched[neighbour] = true;
  if (!only_last) return static_cast<std::uint64_t>(std::ranges::count(touched, false));
  const auto last = std::find(touched.rbegin(), touched.rend(), true);
  return static_cast<std::uint64_t>(last - touched.rbegin());
}

}  // namespace

std::vector<std::string> left_out(const Dataset& dataset, Holds holds) {
  std::vector<std::string> lines;
  std::vector<std::string_view> data;
  if (holds == Holds::everything) return lines;
  if (!dataset.features.empty()) data.emplace_back("features");
  if (!dataset.labels.empty() || !dataset.label_sets.empty()) data.emplace_back("labels");
  if (!dataset.splits.empty()) data.emplace_back("splits");
  if (dataset.is_set_of_graphs()) data.emplace_back("graph ids");
  if (!dataset.original_ids.empty() && holds != Holds::edges_and_ids)
    data.emplace_back("original ids");
  if (!data.empty()) lines.push_back(in_words(data, "and") + " are left out");
  if (holds == Holds::graph) return lines;
  const std::uint64_t bare = std::visit(
      [&](const auto& graph) { return vertices_without_edges(graph, holds == Holds::edges); },
      dataset.graph);
  if (bare == 1) lines.emplace_back("one vertex without edges is left out");
  if (bare > 1) lines.push_back(fmt::format("{} vertices without edges are left out", bare));
  return lines;
}

}  // namespace plait
