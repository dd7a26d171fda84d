#include "plait/apps/pagerank.h"

#include <cmath>

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"

namespace plait {
namespace {

using Source = std::optional<std::uint64_t>;

void check(const Dataset& dataset, const AppSettings& settings) {
  const auto damping = settings.get<double>("damping");
  require<UsageError>(damping > 0 && damping < 1, "damping {} is not between 0 and 1", damping);
  require<UsageError>(dataset.vertices() > 0, "{} has no vertices to rank", dataset.name);
  if (const auto source = settings.get<Source>("source")) require_vertex(dataset, *source);
  if (settings.get<bool>("weighted"))
    require_weights(dataset, "its edges can only be followed with equal chances");
}

// PageRank in plain loops, in double precision.
class Walk {
 public:
  Walk(const Dataset& dataset, const AppSettings& settings)
      : dataset_(dataset),
        damping_(settings.get<double>("damping")),
        source_(settings.get<Source>("source")),
        weighted_(settings.get<bool>("weighted")),
        outward_(dataset.vertices()),
        ranks_(dataset.vertices(), 1 / static_cast<double>(dataset.vertices())) {
    for_edges([&](std::uint64_t from, std::uint64_t, double weight) { outward_[from] += weight; });
  }

  const std::vector<double>& ranks() const { return ranks_; }
  // Makes an iteration. Returns by how much ranks have changed.
  double step() {
    std::vector<double> next(ranks_.size());
    double anew = 1 - damping_;
    for (std::uint64_t v = 0; v < ranks_.size(); ++v)
      if (outward_[v] == 0) anew += damping_ * ranks_[v];
    for_edges([&](std::uint64_t from, std::uint64_t to, double weight) {
      if (outward_[from] > 0) next[to] += damping_ * ranks_[from] * weight / outward_[from];
    });
    double change = 0;
    for (std::uint64_t v = 0; v < next.size(); ++v) {
      if (!source_) next[v] += anew / static_cast<double>(next.size());
      if (source_ == v) next[v] += anew;
      change += std::abs(next[v] - ranks_[v]);
    }
    ranks_.swap(next);
    return change;
  }

 private:
  // Calls f(from, to, weight) for all edges, by numbers.
  template <class F>
  void for_edges(const F& f) const {
    std::visit(
        [&](const auto& graph) {
          for (std::uint64_t v = 0; v < graph.vertices(); ++v)
            for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
              f(dataset_.number(graph.neighbours[e]), dataset_.number(v),
                weighted_ ? double{graph.weights[e]} : 1);
        },
        dataset_.graph);
  }

  const Dataset& dataset_;
  const double damping_;
  const Source source_;
  const bool weighted_;
  std::vector<double> outward_, ranks_;
};

// Makes as many iterations as the result tells of. It must have stopped after the first in which
// ranks changed by less than the tolerance, as far as rounding can tell.
void verify(const Dataset& dataset, const AppSettings& settings, const AppResult& result) {
  const auto& rank = std::get<std::vector<double>>(result.columns[0].values);
  const auto iterations = std::get<std::uint64_t>(result.facts[0].value);
  const auto most = settings.get<std::uint64_t>("iterations");
  const auto enough = settings.get<double>("tolerance");
  const double allowed = enough < 1e-6 ? 1e-11 : 1e-6;  // of all ranks together
  Walk walk(dataset, settings);
  double change = enough + allowed;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    require<MismatchError>(change > enough - allowed, "{} iterations are more than are needed",
                           iterations);
    change = walk.step();
  }
  require<MismatchError>(iterations == most || (iterations < most && change < enough + allowed),
                         "after {} iterations, ranks still change by {}", iterations, change);
  const auto stated = std::get<double>(result.facts[1].value);
  require<MismatchError>(std::abs(stated - change) < allowed,
                         "ranks change by {} in the last iteration, not {}", change, stated);
  double error = 0;
  for (std::uint64_t v = 0; v < rank.size(); ++v) error += std::abs(rank[v] - walk.ranks()[v]);
  require<MismatchError>(error < allowed, "ranks differ by {} from those in plain loops", error);
  require_fact(result, "top",
               static_cast<std::uint64_t>(std::ranges::max_element(rank) - rank.begin()));
}

}  // namespace

const App kPagerank{
    .name = "pagerank",
    .summary = "Find for every vertex the chance that a random walk is there (PageRank)",
    .options = {{.name = "damping",
                 .help = "Chance to follow an edge rather than to begin anew, between 0 and 1",
                 .standard = 0.85,
                 .most = 1},
                {.name = "tolerance",
                 .help = "Iterations end when the ranks of all vertices together change by less "
                         "than this: networkx has it times the number of vertices",
                 .standard = 1e-6},
                {.name = "iterations",
                 .help = "Iterations at most",
                 .standard = std::uint64_t{100},
                 .least = 1},
                {.name = "source",
                 .help = "Vertex where walks begin anew; else all vertices are; ids of an edge "
                         "list are numbered from 0, ascending",
                 .standard = Source{}},
                {.name = "weighted",
                 .help = "Follow edges in proportion to their weights",
                 .standard = false}},
    .columns = {{"rank", false}},
    .facts = {"iterations", "change", "top"},
    .check = check,
    .on_cpu = app_on_cpu<Pagerank>,
    .on_gpu = app_on_gpu<Pagerank>,
    .verify = verify,
    .bytes = {.per_slot = 56}};

}  // namespace plait
