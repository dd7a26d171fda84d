#include <algorithm>
#include <limits>
#include <map>

#include "plait/sample/check.h"
#include "plait/sample/draw.h"

namespace plait {
namespace {

using Positions = std::vector<std::uint64_t>;  // of edges in their row

// One row of the graph, seen by one seed.
template <VertexId V>
struct Row {
  const Csr<V>& graph;
  const SampleValues& values;
  std::uint64_t vertex;
  std::int64_t now = 0;  // the time of the seed

  EdgeOffset edge(std::uint64_t position) const { return graph.offsets[vertex] + position; }
  float weight(std::uint64_t position) const {
    return values.weights.empty() ? 1 : values.weights[edge(position)];
  }
  std::int64_t time(std::uint64_t position) const {
    std::int64_t time = std::numeric_limits<std::int64_t>::min();
    if (!values.edge_times.empty()) time = std::max(time, values.edge_times[edge(position)]);
    if (!values.vertex_times.empty())
      time = std::max(time, values.vertex_times[graph.neighbours[edge(position)]]);
    return time;
  }

  Positions eligible() const {
    Positions found;
    for (std::uint64_t p = 0; p < graph.degree(vertex); ++p)
      if (weight(p) > 0 && (!values.timed() || time(p) <= now)) found.push_back(p);
    return found;
  }
};

// Returns the `count` positions of the least ranks, sorted. Of equal ranks the first one counts.
template <class Rank>
Positions least(const Positions& positions, std::uint64_t count, Rank rank) {
  std::vector<std::pair<decltype(rank(0)), std::uint64_t>> ranked;
  for (const std::uint64_t p : positions) ranked.emplace_back(rank(p), p);
  std::ranges::sort(ranked);
  Positions drawn;
  for (std::uint64_t i = 0; i < count; ++i) drawn.push_back(ranked[i].second);
  std::ranges::sort(drawn);
  return drawn;
}

// Draws with replacement.
template <VertexId V>
Positions draw_again(const Row<V>& row, const Positions& eligible, const VertexDraws& draws,
                     std::uint64_t count) {
  std::vector<double> sums;
  double sum = 0;
  for (const std::uint64_t p : eligible) sums.push_back(sum += double{row.weight(p)});
  Positions drawn;
  for (std::uint64_t i = 0; i < count && !eligible.empty(); ++i)
    if (row.values.weights.empty())
      drawn.push_back(eligible[draws.below(eligible.size(), i, eligible.size())]);
    else
      drawn.push_back(eligible[static_cast<std::size_t>(
          std::ranges::upper_bound(sums, draws.share(i) * sum) - sums.begin())]);
  return drawn;
}

template <VertexId V>
Positions draw(const Row<V>& row, const SampleSettings& settings, const DrawId& id) {
  const Positions eligible = row.eligible();
  const std::int64_t fanout = settings.fanouts[id.hop];
  const VertexDraws draws(id);
  const auto count = static_cast<std::uint64_t>(fanout);
  if (fanout == -1 || (!settings.replace && eligible.size() <= count)) return eligible;
  if (settings.time == TimeRule::last)  // ~time descends as time ascends
    return least(eligible, count, [&](std::uint64_t p) { return ~row.time(p); });
  if (settings.replace) return draw_again(row, eligible, draws, count);
  if (!row.values.weights.empty())
    return least(eligible, count, [&](std::uint64_t p) {
      return weighted_rank(draws.inner_share(p), row.weight(p));
    });
  Positions drawn(count);
  choose_distinct(draws, eligible.size(), count, drawn.data());
  for (std::uint64_t& position : drawn) position = eligible[position];
  return drawn;
}

// The vertices of a sample, by (tree, id).
struct Found {
  Sample& sample;
  bool disjoint;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> numbers{};

  void add(std::uint32_t tree, std::uint64_t vertex) {
    numbers.emplace(std::pair{tree, vertex}, sample.vertices.size());
    sample.vertices.push_back(vertex);
    if (disjoint) sample.trees.push_back(tree);
  }
  std::uint32_t tree_of(std::uint64_t number) const { return disjoint ? sample.trees[number] : 0; }
  std::uint32_t number_of(std::uint32_t tree, std::uint64_t vertex) {
    if (!numbers.contains({tree, vertex})) add(tree, vertex);
    return numbers.at({tree, vertex});
  }
};

template <VertexId V>
Sample sample_graph(const Csr<V>& graph, const SampleSettings& settings, const SampleValues& values,
                    std::span<const std::uint64_t> seeds, std::uint64_t key,
                    std::span<const std::int64_t> times) {
  Sample sample{.seeds = seeds.size()};
  Found found{sample, settings.disjoint};
  for (std::uint64_t i = 0; i < seeds.size(); ++i)
    found.add(settings.disjoint ? static_cast<std::uint32_t>(i) : 0, seeds[i]);
  std::uint64_t edges = 0, first = 0;
  for (std::size_t h = 0; h < settings.fanouts.size(); ++h) {
    const std::uint64_t end = sample.vertices.size();
    Sample::Hop hop{.first_target = first, .offsets = {0}};
    for (std::uint64_t target = first; target < end; ++target) {
      const std::uint32_t tree = found.tree_of(target);
      const Row<V> row{graph, values, sample.vertices[target], times.empty() ? 0 : times[tree]};
      const DrawId id{key, row.vertex, tree, static_cast<std::uint8_t>(h)};
      for (const std::uint64_t position : draw(row, settings, id)) {
        check_sample_size(sample.seeds, ++edges);
        hop.edges.push_back(row.edge(position));
        hop.neighbours.push_back(found.number_of(tree, graph.neighbours[row.edge(position)]));
      }
      hop.offsets.push_back(static_cast<std::uint32_t>(hop.edges.size()));
    }
    hop.vertices = sample.vertices.size();
    if (settings.targets == HopTargets::newest) first = end;
    sample.hops.push_back(std::move(hop));
  }
  return sample;
}

}  // namespace

Sample sample_neighbours_reference(const AnyCsr& graph, const SampleSettings& settings,
                                   const SampleValues& values, std::span<const std::uint64_t> seeds,
                                   std::uint64_t key, std::span<const std::int64_t> times) {
  check_sampler(graph, settings, values);
  check_seeds(vertex_count(graph), edge_count(graph), values.timed(), seeds, times);
  return std::visit(
      [&](const auto& csr) { return sample_graph(csr, settings, values, seeds, key, times); },
      graph);
}

}  // namespace plait
