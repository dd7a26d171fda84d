#include "plait/sample/walks.h"

#include <algorithm>
#include <cmath>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/saturating.h"
#include "plait/sample/check.h"
#include "plait/sample/row_sums.h"
#include "plait/sample/walk_step.h"

namespace plait {
namespace {

constexpr std::size_t kWalksGrain = std::size_t{1} << 14;
// Walks that a thread moves on side by side, so that their accesses to memory overlap.
constexpr std::size_t kTogether = 64;

template <VertexId V>
WalkGraph<V> view_of(const Csr<V>& graph, std::span<const double> sums, bool sorted) {
  return {graph.offsets.data(), graph.neighbours.data(), sums.empty() ? nullptr : sums.data(),
          sorted};
}

// Moves walks on from their starts, and calls visit(place, step, vertex) for each vertex from the
// start on; place: of the walk in `starts`. `first`: the number of the first of them, counted from
// settings.first.
template <class V, class Visit>
void walk_together(const WalkGraph<V>& graph, const WalkSettings& settings, std::uint64_t key,
                   std::uint64_t first, std::span<const std::uint64_t> starts, Visit visit) {
  const WalkRule rule = WalkRule::of(settings.p, settings.q, settings.restart);
  const Philox philox = walk_philox(key);
  Walk walks[kTogether];
  for (std::size_t i = 0; i < starts.size(); ++i) {
    walks[i] = {starts[i], starts[i]};
    visit(i, std::uint64_t{0}, starts[i]);
  }
  for (std::uint64_t s = 0; s < settings.length; ++s)
    for (std::size_t i = 0; i < starts.size(); ++i) {
      step(graph, rule, WalkDraws(philox, settings.first + first + i, s), walks[i]);
      __builtin_prefetch(graph.offsets + walks[i].at);
      visit(i, s + 1, walks[i].at);
    }
}

// Orders the visited vertices by their visits, and returns at most `count` of them.
std::vector<std::pair<std::uint64_t, std::uint32_t>> most_often(std::vector<std::uint64_t>& visited,
                                                                std::uint64_t count) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;  // vertices and visits
  std::ranges::sort(visited);
  for (const std::uint64_t v : visited)
    if (!found.empty() && found.back().first == v)
      ++found.back().second;
    else
      found.emplace_back(v, 1);
  std::ranges::stable_sort(found, [](auto a, auto b) { return a.second > b.second; });
  if (found.size() > count) found.resize(count);
  found.shrink_to_fit();  // one list stays for each start
  return found;
}

}  // namespace

void check_walks(const WalkSettings& settings, std::uint64_t vertices,
                 std::span<const std::uint64_t> starts) {
  require<UsageError>(settings.length <= WalkSettings::kMostSteps,
                      "a walk of {} steps is asked for; at most {} are allowed", settings.length,
                      WalkSettings::kMostSteps);
  constexpr double kLeast = WalkSettings::kLeast, kMost = WalkSettings::kMost;
  for (const auto& [name, value] : {std::pair{"p", settings.p}, {"q", settings.q}})
    require<UsageError>(value >= kLeast && value <= kMost, "{} is {}, outside {}..{}", name, value,
                        kLeast, kMost);
  require<UsageError>(settings.restart >= 0 && settings.restart < 1,
                      "the chance of a restart is {}; it must be at least 0 and below 1",
                      settings.restart);
  check_ids("start", vertices, starts);
}

RandomWalks::RandomWalks(AnyCsr graph, std::span<const float> weights) : graph_(std::move(graph)) {
  check_weights(edge_count(graph_), weights);
  if (!weights.empty()) sums_ = row_sums(graph_, weights);
  sorted_ = std::visit(
      [](const auto& csr) {
        return first_where(csr.vertices(), kWalksGrain, [&](std::size_t v) {
                 return !std::ranges::is_sorted(csr.row(v));
               }) == csr.vertices();
      },
      graph_);
}

bool RandomWalks::is_end(std::uint64_t vertex) const {
  return std::visit([&](const auto& csr) { return view_of(csr, sums(), sorted_).is_end(vertex); },
                    graph_);
}

RawVector<std::uint64_t> RandomWalks::walk(const WalkSettings& settings,
                                           std::span<const std::uint64_t> starts,
                                           std::uint64_t key) const {
  check_walks(settings, vertex_count(graph_), starts);
  const std::uint64_t width = settings.length + 1;
  const Bytes bytes = Bytes(starts.size()) * Bytes(width) * Bytes(sizeof(std::uint64_t));
  require_large_memory(bytes.value, "an array of the walks");
  RawVector<std::uint64_t> walks(starts.size() * width);
  std::visit(
      [&](const auto& csr) {
        const auto graph = view_of(csr, sums(), sorted_);
        parallel_blocks(starts.size(), kTogether, [&](std::size_t begin, std::size_t end) {
          walk_together(graph, settings, key, begin, starts.subspan(begin, end - begin),
                        [&](std::size_t i, std::uint64_t s, std::uint64_t vertex) {
                          walks[(begin + i) * width + s] = vertex;
                        });
        });
      },
      graph_);
  return walks;
}

VisitedVertices RandomWalks::most_visited(const WalkSettings& settings, std::uint64_t walks,
                                          std::uint64_t count,
                                          std::span<const std::uint64_t> starts,
                                          std::uint64_t key) const {
  check_walks(settings, vertex_count(graph_), starts);
  const std::uint64_t steps =
      (Bytes(walks) * Bytes(std::max<std::uint64_t>(settings.length, 1))).value;
  require<UsageError>(
      walks >= 1 && count >= 1 && steps < kMaxVertices32,
      "{} walks of {} steps from each start, of which {} vertices are kept; give at "
      "least one each, and less than 2^32 steps",
      walks, settings.length, count);
  // The vertices that each thread's walks visit, in a vector that grows by doubling.
  const auto at_once =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(thread_count()), starts.size());
  // The vertices that are kept of each start stand in pairs, and then in the result.
  const std::uint64_t kept = std::min({count, steps, vertex_count(graph_)});
  const Bytes bytes = Bytes(steps) * Bytes(2 * sizeof(std::uint64_t)) * Bytes(at_once) +
                      Bytes(starts.size()) * (Bytes(kept) * Bytes(28) + Bytes(32));
  require_large_memory(bytes.value, "an array of the walks");
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> found(starts.size());
  std::visit(
      [&](const auto& csr) {
        const auto graph = view_of(csr, sums(), sorted_);
        parallel_for(starts.size(), [&](std::size_t place) {
          std::vector<std::uint64_t> visited;
          const std::vector<std::uint64_t> same(std::min<std::uint64_t>(walks, kTogether),
                                                starts[place]);
          for (std::uint64_t w = 0; w < walks; w += kTogether)
            walk_together(graph, settings, key, place * walks + w,
                          std::span(same).first(std::min<std::uint64_t>(kTogether, walks - w)),
                          [&](std::size_t, std::uint64_t, std::uint64_t vertex) {
                            if (vertex != starts[place]) visited.push_back(vertex);
                          });
          found[place] = most_often(visited, count);
        });
      },
      graph_);
  VisitedVertices most{.offsets = {0}, .vertices = {}, .visits = {}};
  for (const auto& of_start : found) {
    for (const auto& [vertex, visits] : of_start) {
      most.vertices.push_back(vertex);
      most.visits.push_back(visits);
    }
    most.offsets.push_back(most.vertices.size());
  }
  return most;
}

}  // namespace plait
