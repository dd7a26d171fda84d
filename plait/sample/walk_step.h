// One step of a random walk, one function for the CPU and the GPU.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"
#include "plait/base/lower_bound.h"
#include "plait/base/random.h"
#include "plait/sample/draw.h"

namespace plait {

// Arrays of the graph. A step leads from a vertex to a neighbour in its row.
template <class V>
struct WalkGraph {
  const EdgeOffset* offsets;
  const V* neighbours;
  const double* sums;  // row_sums(), or null: all edges are equally likely
  bool sorted;         // each row ascends

  PLAIT_HOST_DEVICE std::uint64_t degree(std::uint64_t v) const {
    return offsets[v + 1] - offsets[v];
  }
  // Tells whether a walk ends at v: it has no edges, or none with a weight above 0.
  PLAIT_HOST_DEVICE bool is_end(std::uint64_t v) const {
    const std::uint64_t edges = degree(v);
    return edges == 0 || (sums != nullptr && !(sums[offsets[v] + edges - 1] > 0));
  }
  PLAIT_HOST_DEVICE double weight(std::uint64_t v, std::uint64_t position) const {
    if (sums == nullptr) return 1;
    const double* const row = sums + offsets[v];
    return position > 0 ? row[position] - row[position - 1] : row[0];
  }
  // Returns the sums of the weights of the edges of v, and of those that lead to a vertex.
  PLAIT_HOST_DEVICE double weight_of_all(std::uint64_t v) const {
    return sums != nullptr ? sums[offsets[v + 1] - 1] : static_cast<double>(degree(v));
  }
  PLAIT_HOST_DEVICE double weight_to(std::uint64_t v, std::uint64_t to) const {
    double sum = 0;
    const V* const row = neighbours + offsets[v];
    for (std::uint64_t p = first_to(v, to); p < degree(v) && (!sorted || row[p] == to); ++p)
      if (row[p] == to) sum += weight(v, p);
    return sum;
  }
  PLAIT_HOST_DEVICE bool has_edge(std::uint64_t v, std::uint64_t to) const {
    const std::uint64_t p = first_to(v, to);
    return p < degree(v) && neighbours[offsets[v] + p] == to;
  }
  // Returns the first position of an edge of v to a vertex, if there is one.
  PLAIT_HOST_DEVICE std::uint64_t first_to(std::uint64_t v, std::uint64_t to) const {
    const V* const row = neighbours + offsets[v];
    if (sorted) return lower_bound(row, 0, degree(v), to);
    std::uint64_t first = 0;
    while (first < degree(v) && row[first] != to) ++first;
    return first;
  }
};

// The rule of a step: the factors of weights of edges (node2vec), and the chance of a restart.
struct WalkRule {
  double back = 1, near = 1, far = 1;  // 1 / p, 1 and 1 / q
  double restart = 0;
  bool second_order = false;

  static WalkRule of(double p, double q, double restart) {
    return {1 / p, 1, 1 / q, restart, p != 1 || q != 1};
  }
};

// A walk on its way.
struct Walk {
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  std::uint64_t start, at;
  std::uint64_t before = kNowhere;  // the vertex from which a step led to `at`
};

// The random numbers of one step. Encoding of a counter: low is the number of the walk; high has
// the step in bits 32 to 63 and the number of the block of four words below.
class WalkDraws {
 public:
  static constexpr std::uint64_t kRestart = 0xffffffffu, kWhole = 0xfffffffeu;  // blocks

  PLAIT_HOST_DEVICE constexpr WalkDraws(const Philox& philox, std::uint64_t walk,
                                        std::uint64_t step)
      : philox_(philox), walk_(walk), high_(step << 32) {}
  PLAIT_HOST_DEVICE constexpr Philox::Block block(std::uint64_t i) const {
    return philox_(walk_, high_ | i);
  }
  PLAIT_HOST_DEVICE constexpr double share(std::uint64_t i) const {
    const Philox::Block words = block(i);
    return uniform_double(words[0], words[1]);
  }

 private:
  const Philox& philox_;
  std::uint64_t walk_, high_;
};

namespace walk_step {

// Returns node2vec's factor of an edge to `to`, by whether an edge leads from there to the vertex
// before.
template <class V>
PLAIT_HOST_DEVICE double factor(const WalkGraph<V>& graph, const WalkRule& rule, const Walk& walk,
                                std::uint64_t to) {
  if (to == walk.before) return rule.back;
  if (rule.near == rule.far) return rule.near;
  return graph.has_edge(to, walk.before) ? rule.near : rule.far;
}

// Returns a neighbour that is drawn by weights times factors. Computes all factors.
template <class V>
PLAIT_HOST_DEVICE std::uint64_t drawn_by_all(const WalkGraph<V>& graph, const WalkRule& rule,
                                             const Walk& walk, double share) {
  const V* const row = graph.neighbours + graph.offsets[walk.at];
  const std::uint64_t degree = graph.degree(walk.at);
  const auto part = [&](std::uint64_t p) {
    const double weight = graph.weight(walk.at, p);
    return weight > 0 ? weight * factor(graph, rule, walk, row[p]) : 0;
  };
  double all = 0, sum = 0;
  for (std::uint64_t p = 0; p < degree; ++p) all += part(p);
  std::uint64_t drawn = 0;
  for (std::uint64_t p = 0; p < degree; ++p) {
    const double here = part(p);
    if (here > 0) drawn = p;
    if ((sum += here) > share * all) break;
  }
  return row[drawn];
}

// Returns a neighbour that is drawn by weights alone.
template <class V>
PLAIT_HOST_DEVICE std::uint64_t proposed(const WalkGraph<V>& graph, std::uint64_t at,
                                         const Philox::Block& words) {
  const EdgeOffset first = graph.offsets[at];
  const std::uint64_t degree = graph.degree(at);
  const std::uint64_t position =
      graph.sums != nullptr
          ? drawn_by_sums(graph.sums + first, degree, uniform_double(words[0], words[1]))
          : uniform_below(degree, words[0], words[1]);
  return graph.neighbours[first + position];
}

// Returns the neighbour to which the walk goes, by rejection (Yang et al., "KnightKing", SOSP 2019,
// section 4): a neighbour is proposed by weights, and taken by its factor. Edges back whose factor
// is greater than all others have the surplus as a share of their own, so that it does not lessen
// the chance of other proposals. If more proposals are refused than the row has edges, all factors
// are computed instead.
template <class V>
PLAIT_HOST_DEVICE std::uint64_t drawn(const WalkGraph<V>& graph, const WalkRule& rule,
                                      const Walk& walk, const WalkDraws& draws) {
  if (!rule.second_order || walk.before == Walk::kNowhere)
    return proposed(graph, walk.at, draws.block(0));
  constexpr std::uint64_t kLeast = 16;
  const std::uint64_t wanted = graph.degree(walk.at) + kLeast;
  const std::uint64_t most = wanted < WalkDraws::kWhole ? wanted : WalkDraws::kWhole;
  const double greatest = rule.near > rule.far ? rule.near : rule.far;
  const double all = graph.weight_of_all(walk.at), others = all * greatest;
  double surplus = 0;
  if (rule.back > greatest)
    surplus = graph.weight_to(walk.at, walk.before) * (rule.back - greatest);
  for (std::uint64_t i = 0; i < most; ++i) {
    const Philox::Block words = draws.block(i);
    const double share = uniform_double(words[2], words[3]) * (others + surplus);
    if (share >= others) return walk.before;
    const std::uint64_t to = proposed(graph, walk.at, words);
    if (share < all * factor(graph, rule, walk, to)) return to;
  }
  return drawn_by_all(graph, rule, walk, draws.share(WalkDraws::kWhole));
}

}  // namespace walk_step

// Moves the walk on.
template <class V>
PLAIT_HOST_DEVICE void step(const WalkGraph<V>& graph, const WalkRule& rule, const WalkDraws& draws,
                            Walk& walk) {
  if (rule.restart > 0 && draws.share(WalkDraws::kRestart) < rule.restart) {
    walk.at = walk.start;
    walk.before = Walk::kNowhere;
  } else if (!graph.is_end(walk.at)) {
    const std::uint64_t to = walk_step::drawn(graph, rule, walk, draws);
    walk.before = walk.at;
    walk.at = to;
  }
}

// Returns the generator of walks of a key, apart from other uses of the key.
PLAIT_HOST_DEVICE constexpr Philox walk_philox(std::uint64_t key) {
  const auto words = Philox(key)(0x57616C6B73u, ~std::uint64_t{0});
  return Philox(std::uint64_t{words[0]} << 32 | words[1]);
}

}  // namespace plait
