// Communities on the current GPU, on the default stream, under the names that they have on either
// device.
#pragma once

#include "plait/communities/cuda/quotient.cuh"

namespace plait {

struct CommunitiesOnGpu {
  using Labels = DeviceArray<std::uint32_t>;
  using Graph = DeviceQuotient;

  static Labels labels_of(std::span<const std::uint32_t> labels) { return Labels(labels); }
  static Labels moves(const WeightedRows& graph, const MoveRules& rules) {
    return local_moves(graph, rules, nullptr);
  }
  static std::uint32_t dense(Labels& labels) { return make_dense(labels, labels.size(), nullptr); }
  static Graph quotient(const WeightedRows& graph, const Labels& labels,
                        std::uint32_t communities) {
    return quotient_of(graph, labels, communities, nullptr);
  }
  static Quotient to_host(const Graph& graph) { return plait::to_host(graph); }
  static Graph from_host(const Quotient& graph) { return to_gpu(graph); }
};

}  // namespace plait
