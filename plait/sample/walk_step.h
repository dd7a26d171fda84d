// One step of a random walk, one function for the CPU and the GPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"
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
  PLAIT_HOST_DEVICE bool is_end(std::uint64_t v) const {
    const std::uint64_t edges = degree(v);
    return edges == 0 || (sums != nullptr && !(sums[offsets[v] + edges - 1] > 0));
  }
  PLAIT_HOST_DEVICE double weight(std::uint64_t v, std::uint64_t position) const {
    if (sums == nullptr) return 1;
    const double* const row = sums + offsets[v];
    return position > 0 ? row[position] - row[position - 1] : row[0];
  }
  PLAIT_HOST_DEVICE bool has_edge(std::uint64_t v, std::uint64_t to) const {
    const V *first = neighbours + offsets[v], *last = neighbours + offsets[v + 1];
    if (!sorted) {
      while (first < last && *first != to) ++first;
      return first < last;
    }
    while (first < last) {
      const V* const middle = first + (last - first) / 2;
      if (*middle < to)
        first = middle + 1;
      else
        last = middle;
    }
    return first < neighbours + offsets[v + 1] && *first == to;
  }
};

// The rule of a step. Chances are relative to the greatest of the three, which is 1.
struct WalkRule {
  double back = 1, near = 1, far = 1;  // node2vec's 1 / p, 1 and 1 / q
  double restart = 0;
  bool second_order = false;

  static WalkRule of(double p, double q, double restart) {
    const double most = std::max({1 / p, 1.0, 1 / q});
    return {1 / p / most, 1 / most, 1 / q / most, restart, p != 1 || q != 1};
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

// Returns node2vec's chance of a step to `to`, by whether an edge leads from there to the vertex
// before.
template <class V>
PLAIT_HOST_DEVICE double chance(const WalkGraph<V>& graph, const WalkRule& rule, const Walk& walk,
                                std::uint64_t to) {
  if (to == walk.before) return rule.back;
  if (rule.near == rule.far) return rule.near;
  return graph.has_edge(to, walk.before) ? rule.near : rule.far;
}

// Returns the position of an edge that is drawn by the chances of all.
template <class V>
PLAIT_HOST_DEVICE std::uint64_t drawn_by_all(const WalkGraph<V>& graph, const WalkRule& rule,
                                             const Walk& walk, double share) {
  const V* const row = graph.neighbours + graph.offsets[walk.at];
  const std::uint64_t degree = graph.degree(walk.at);
  const auto chance_at = [&](std::uint64_t p) {
    const double weight = graph.weight(walk.at, p);
    return weight > 0 ? weight * chance(graph, rule, walk, row[p]) : 0;
  };
  double all = 0, sum = 0;
  for (std::uint64_t p = 0; p < degree; ++p) all += chance_at(p);
  std::uint64_t drawn = 0;
  for (std::uint64_t p = 0; p < degree; ++p) {
    const double here = chance_at(p);
    if (here > 0) drawn = p;
    if ((sum += here) > share * all) break;
  }
  return drawn;
}

// Returns the position of the edge that the walk takes, by rejection (Yang et al., "KnightKing",
// SOSP 2019, section 4): an edge is proposed by its weight alone, and taken by its chance. If that
// takes more proposals than the row has edges, all chances are computed instead.
template <class V>
PLAIT_HOST_DEVICE std::uint64_t drawn(const WalkGraph<V>& graph, const WalkRule& rule,
                                      const Walk& walk, const WalkDraws& draws) {
  constexpr std::uint64_t kLeast = 16;
  const EdgeOffset first = graph.offsets[walk.at];
  const std::uint64_t degree = graph.degree(walk.at);
  const std::uint64_t most =
      degree + kLeast < WalkDraws::kWhole ? degree + kLeast : WalkDraws::kWhole;
  for (std::uint64_t i = 0; i < most; ++i) {
    const Philox::Block words = draws.block(i);
    const std::uint64_t position =
        graph.sums != nullptr
            ? drawn_by_sums(graph.sums + first, degree, uniform_double(words[0], words[1]))
            : uniform_below(degree, words[0], words[1]);
    if (!rule.second_order || walk.before == Walk::kNowhere) return position;
    const double taken = chance(graph, rule, walk, graph.neighbours[first + position]);
    if (uniform_double(words[2], words[3]) < taken) return position;
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
    const std::uint64_t position = walk_step::drawn(graph, rule, walk, draws);
    walk.before = walk.at;
    walk.at = graph.neighbours[graph.offsets[walk.at] + position];
  }
}

// Returns the generator of walks of a key, apart from other uses of the key.
PLAIT_HOST_DEVICE constexpr Philox walk_philox(std::uint64_t key) {
  const auto words = Philox(key)(0x57616C6B73u, ~std::uint64_t{0});
  return Philox(std::uint64_t{words[0]} << 32 | words[1]);
}

}  // namespace plait
