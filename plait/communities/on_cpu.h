// Communities on the CPU, under the names that they have on either device.
#pragma once

#include "plait/communities/moves.h"
#include "plait/communities/quotient.h"

namespace plait {

struct CommunitiesOnCpu {
  using Labels = std::vector<std::uint32_t>;
  using Graph = Quotient;

  static Labels labels_of(std::span<const std::uint32_t> labels) {
    return {labels.begin(), labels.end()};
  }
  static Labels moves(const WeightedRows& graph, const MoveRules& rules) {
    return local_moves(graph, rules);
  }
  static std::uint32_t dense(Labels& labels) { return make_dense(labels); }
  static Graph quotient(const WeightedRows& graph, const Labels& labels,
                        std::uint32_t communities) {
    return quotient_of(graph, labels, communities);
  }
  static Quotient to_host(Graph graph) { return graph; }
  static Graph from_host(Quotient graph) { return graph; }
};

}  // namespace plait
