#include "plait/frontier/graph.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"

namespace plait {
SpreadGraph::SpreadGraph(World& world, const Dataset& dataset, const Partition& partition, bool gpu,
                         DeviceTransport transport)
    : world_(world), partition_(partition), symmetric_(dataset.symmetric), edges_(dataset.edges()) {
  const Route route =
      resolved({.transport = transport, .gpu = gpu, .exact = true});  // edges as they are given
  exchange_ =
      make_exchange(world, dataset.graph, symmetric_, partition,
                    {.route = route,
                     .shards = {.transposed = false, .slot_vertices = true, .both_ways = true},
                     .max_width = 2});
  on_all_or_none(world, [&] {
    if (symmetric_) return;
    inward_.resize(own());
    std::visit(
        [&](const auto& rows) {
          for (std::uint64_t r = 0; r < own(); ++r)
            inward_[r] = rows.degree(partition.vertex(world.rank(), r));
        },
        dataset.graph);
  });
  if (world.size() > 1) messages_ = exchange_->make_messages(Direction::along);
}

std::optional<std::uint64_t> SpreadGraph::row_of(std::uint64_t number) const {
  require<UsageError>(number < vertices(), "vertex {} is not in 0..{}", number, vertices() - 1);
  const auto& numbers = partition_.numbers();
  const std::uint64_t v =
      numbers.empty()
          ? number
          : static_cast<std::uint64_t>(std::ranges::find(numbers, number) - numbers.begin());
  if (partition_.owner(v) != world_.rank()) return {};
  return partition_.row(v);
}

GraphView view_of(SpreadGraph& graph, const EdgeOffset* first_out) {
  const EdgeRows edges = graph.exchange().edges(Direction::along);
  const auto numbers = graph.exchange().vertices(Direction::along);
  const SlotEdges all{edges.begin.data(), edges.end.data(), edges.columns, edges.weights};
  GraphView view{.in = all,
                 .out = all,
                 .all = all,
                 .own = edges.begin.size(),
                 .slots = numbers.size(),
                 .numbers = graph.numbered_by_slot() ? nullptr : numbers.data()};
  if (first_out != nullptr) view.in.end = view.out.begin = first_out;
  return view;
}

}  // namespace plait
