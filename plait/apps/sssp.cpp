#include "plait/apps/sssp.h"

#include <functional>
#include <queue>

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"

namespace plait {
namespace {

void check(const Dataset& dataset, const AppSettings& settings) {
  require_vertex(dataset, settings.get<std::uint64_t>("source"));
  require_weights(dataset, "bfs finds the paths of fewest edges");
}

// The edges that lead from each vertex, by numbers.
struct OutwardEdge {
  std::uint64_t to;
  float weight;
};
using OutwardEdges = std::vector<std::vector<OutwardEdge>>;

OutwardEdges outward_edges(const Dataset& dataset) {
  OutwardEdges edges(dataset.vertices());
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v)
          for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
            edges[dataset.number(graph.neighbours[e])].push_back(
                {dataset.number(v), graph.weight(e)});
      },
      dataset.graph);
  return edges;
}

// Dijkstra's algorithm. Returns the distances by number.
std::vector<double> distances_from(std::uint64_t source, const OutwardEdges& edges) {
  std::vector<double> distance(edges.size(), kFar);
  using Entry = std::pair<double, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.emplace(distance[source] = 0, source);
  while (!queue.empty()) {
    const auto [here, vertex] = queue.top();
    queue.pop();
    if (here > distance[vertex]) continue;
    for (const auto& [to, weight] : edges[vertex])
      if (here + weight < distance[to]) queue.emplace(distance[to] = here + weight, to);
  }
  return distance;
}

// Returns the parents that these distances give, or -1.
std::vector<std::int64_t> parents_by(const std::vector<double>& distance, std::uint64_t source,
                                     const OutwardEdges& edges) {
  std::vector<std::int64_t> parent(distance.size(), -1);
  const auto offer = [&](std::uint64_t from, std::uint64_t to) {
    if (parent[to] < 0 || static_cast<std::uint64_t>(parent[to]) > from)
      parent[to] = static_cast<std::int64_t>(from);
  };
  parent[source] = static_cast<std::int64_t>(source);
  for (std::uint64_t u = 0; u < edges.size(); ++u)
    for (const auto& [to, weight] : edges[u])
      if (distance[u] < distance[to] && distance[u] + weight == distance[to]) offer(u, to);
  std::vector<std::uint64_t> from;  // vertices that got a parent in the last round
  for (std::uint64_t u = 0; u < edges.size(); ++u)
    if (parent[u] >= 0) from.push_back(u);
  while (!from.empty()) {
    std::ranges::sort(from);
    std::vector<std::uint64_t> next;
    for (const std::uint64_t u : from)
      for (const auto& [to, weight] : edges[u])
        if (parent[to] < 0 && distance[u] == distance[to] && distance[u] + weight == distance[to])
          offer(u, to), next.push_back(to);
    from.swap(next);
  }
  return parent;
}

void verify(const Dataset& dataset, const AppSettings& settings, const AppResult& result) {
  const auto source = settings.get<std::uint64_t>("source");
  const auto& distance = std::get<std::vector<double>>(result.columns[0].values);
  const auto& parent = std::get<std::vector<std::int64_t>>(result.columns[1].values);
  const OutwardEdges edges = outward_edges(dataset);
  const std::vector<double> distances = distances_from(source, edges);
  const std::vector<std::int64_t> parents = parents_by(distances, source, edges);
  std::uint64_t reached = 0;
  double farthest = 0;
  for (std::uint64_t v = 0; v < distances.size(); ++v) {
    require<MismatchError>(distance[v] == distances[v] && parent[v] == parents[v],
                           "vertex {} has distance {} and parent {}, not {} and {}", v, distance[v],
                           parent[v], distances[v], parents[v]);
    if (distances[v] == kFar) continue;
    ++reached;
    farthest = std::max(farthest, distances[v]);
  }
  require_fact(result, "reached", reached);
  require_fact(result, "farthest", farthest);
}

}  // namespace

const App kSssp{
    .name = "sssp",
    .summary = "Find for every vertex the least weight of a path from a source",
    .options =
        {{.name = "source",
          .help =
              "Vertex from which paths begin; ids of an edge list are numbered from 0, ascending",
          .standard = std::uint64_t{0}}},
    .columns = {{"distance", false}, {"parent", true}},
    .facts = {"source", "reached", "farthest"},
    .check = check,
    .on_cpu = app_on_cpu<Sssp>,
    .on_gpu = app_on_gpu<Sssp>,
    .verify = verify,
    .bytes = {.per_slot = 72}};

}  // namespace plait
