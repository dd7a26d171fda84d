#include "plait/apps/louvain.h"

#include <map>
#include <numeric>

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"
#include "plait/apps/weak_components.h"

namespace plait {

std::vector<std::uint64_t> by_number(World& world, const Partition& partition,
                                     const std::vector<std::uint64_t>& of_rows) {
  std::vector<std::uint64_t> all(partition.vertices());
  const auto parts = gather_vectors(world, of_rows);
  for (int part = 0; part < partition.parts(); ++part)
    for (std::uint64_t row = 0; row < partition.size(part); ++row)
      all[partition.number(part, row)] = parts[static_cast<std::size_t>(part)][row];
  return all;
}

namespace {

// Gives each group that is not connected the labels of its parts: the least vertex of each.
void split_groups(const Quotient& graph, std::vector<std::uint32_t>& groups) {
  std::vector<std::uint32_t> parent(groups.size());
  std::iota(parent.begin(), parent.end(), 0u);
  join_groups(graph.rows(), groups.data(), parent.data(), 0, graph.neighbours.size());
  for (std::uint32_t v = 0; v < groups.size(); ++v) shorten_path(parent.data(), v);
  groups = std::move(parent);
}

// Returns for each merged community the least that is in the same group.
std::vector<std::uint32_t> starts(const std::vector<std::uint32_t>& groups,
                                  const std::vector<std::uint32_t>& merged, std::uint32_t count) {
  std::vector<std::uint32_t> least(groups.size(), ~std::uint32_t{0}), found(count);
  for (std::size_t v = 0; v < groups.size(); ++v)
    least[groups[v]] = std::min(least[groups[v]], merged[v]);
  for (std::size_t v = 0; v < groups.size(); ++v) found[merged[v]] = least[groups[v]];
  return found;
}

}  // namespace

std::vector<std::uint32_t> merged_on_host(Quotient graph, std::vector<std::uint32_t> start,
                                          MoveRules rules, bool refine) {
  std::vector<std::uint32_t> found(graph.communities());
  std::iota(found.begin(), found.end(), 0u);
  const auto take = [&](const std::vector<std::uint32_t>& labels) {
    for (std::uint32_t& label : found) label = labels[label];
  };
  for (;;) {
    rules.movable = 0;
    for (std::uint32_t v = 0; v < graph.communities(); ++v)
      rules.movable += graph.offsets[v] < graph.offsets[v + std::size_t{1}];
    rules.start = start.empty() ? nullptr : start.data();
    rules.within = nullptr;
    std::vector<std::uint32_t> groups = local_moves(graph.rows(), rules), merged = groups;
    rules.start = nullptr;
    rules.within = groups.data();
    if (refine) merged = local_moves(graph.rows(), rules);
    const std::uint32_t count = make_dense(merged);
    if (count == graph.communities()) {
      if (refine) split_groups(graph, groups);
      take(refine ? groups : merged);
      return found;
    }
    take(merged);
    start = refine ? starts(groups, merged, count) : std::vector<std::uint32_t>{};
    graph = quotient_of(graph.rows(), merged, count);
  }
}

void check_communities(const Dataset& dataset, const AppSettings& settings) {
  constexpr std::uint64_t kMost = 0xfffffffe;
  require<UsageError>(dataset.vertices() <= kMost,
                      "{} has {} vertices, but {} at most can be moved", dataset.name,
                      dataset.vertices(), kMost);
  if (settings.get<bool>("weighted"))
    require_weights(dataset, "all its edges can only weigh the same");
}

namespace {

// Calls f(vertex, neighbour, weight) for all entries of the matrix, by numbers: for those of A, and
// for those of A' unless they are the same.
template <class F>
void for_entries(const Dataset& dataset, bool weighted, const F& f) {
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v)
          for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
            const std::uint64_t a = dataset.number(v), b = dataset.number(graph.neighbours[e]);
            const double weight = weighted ? double{graph.weights[e]} : 1;
            f(a, b, weight);
            if (!dataset.symmetric) f(b, a, weight);
          }
      },
      dataset.graph);
}

}  // namespace

void verify_communities(const Dataset& dataset, const AppSettings& settings,
                        const AppResult& result, bool connected) {
  const auto& community = std::get<std::vector<std::int64_t>>(result.columns[0].values);
  const bool weighted = settings.get<bool>("weighted");
  std::map<std::int64_t, std::uint64_t> sizes;
  for (std::size_t v = 0; v < community.size(); ++v) {
    const std::int64_t label = community[v];
    const bool stands = label >= 0 && label <= static_cast<std::int64_t>(v) &&
                        community[static_cast<std::size_t>(label)] == label;
    require<MismatchError>(stands, "vertex {} has the community {}, which is not its least vertex",
                           v, label);
    ++sizes[label];
  }
  std::vector<double> ends(community.size());
  std::vector<bool> drawn(community.size());            // by an edge to another vertex
  std::vector<std::uint32_t> parent(community.size());  // in trees of connected members
  std::iota(parent.begin(), parent.end(), 0u);
  double inside = 0, all = 0;
  for_entries(dataset, weighted, [&](std::uint64_t a, std::uint64_t b, double weight) {
    all += weight;
    ends[static_cast<std::size_t>(community[a])] += weight;
    if (a != b) drawn[a] = true;
    if (community[a] != community[b]) return;
    inside += weight;
    if (weight > 0)
      join_trees(parent.data(), static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
  });
  for (std::size_t v = 0; v < community.size(); ++v)
    require<MismatchError>(drawn[v] || sizes[community[v]] == 1,
                           "vertex {} has no edge to another, but is not alone", v);
  for (std::uint32_t v = 0; connected && v < community.size(); ++v) {
    shorten_path(parent.data(), v);
    require<MismatchError>(parent[v] == community[v],
                           "no path inside its community leads from vertex {} to vertex {}", v,
                           community[v]);
  }
  double by_chance = 0;
  for (const double end : ends)
    if (all > 0) by_chance += (end / all) * (end / all);
  by_chance *= settings.get<double>("resolution");
  const double modularity = (all > 0 ? inside / all : 0) - by_chance;
  // Weights are rounded to multiples of at least 2^-52 of their sum.
  const double rounded = weighted ? static_cast<double>(dataset.edges()) * 0x1p-50 : 0;
  const auto stated = std::get<double>(result.facts[2].value);
  require<MismatchError>(std::abs(stated - modularity) <= (1e-9 + rounded) * (1 + by_chance),
                         "modularity is {}, not {}", modularity, stated);
  std::uint64_t largest = 0;
  for (const auto& [label, size] : sizes) largest = std::max(largest, size);
  require_fact(result, "communities", std::uint64_t{sizes.size()});
  require_fact(result, "largest", largest);
}

std::vector<AppOption> community_options() {
  return {{.name = "resolution",
           .help = "Factor of the edges that chance would put inside communities: higher values "
                   "give smaller communities",
           .standard = 1.0,
           .least = 1e-9,
           .most = 1e9},
          {.name = "weighted",
           .help = "Count edges by their weights",
           .standard = false,
           .bytes = {.per_edge = 8}}};
}

const App kLouvain{
    .name = "louvain",
    .summary = "Find communities of vertices with many edges among them (Louvain)",
    .options = community_options(),
    .columns = {{"community", true}},
    .facts = {"communities", "largest", "modularity"},
    .check = check_communities,
    .on_cpu = app_on_cpu<Louvain>,
    .on_gpu = app_on_gpu<Louvain>,
    .verify = [](const Dataset& dataset, const AppSettings& settings,
                 const AppResult& result) { verify_communities(dataset, settings, result, false); },
    .bytes = kCommunityBytes};

}  // namespace plait
