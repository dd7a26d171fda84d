#include "plait/aggregate/shared_order.h"

#include <fmt/format.h>

#include "plait/graph/renumber.h"
#include "plait/reorder/cuda/community_order.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/phase.h"

namespace plait {

Buffer<std::uint64_t> shared_order(World& world, ReorderMethod method, const ReorderInput& input) {
  if (method == ReorderMethod::none) return {};
  Reordering found;
  on_all_or_none(world, [&] {
    if (world.rank() == 0) found = find_order(method, input);
  });
  std::uint8_t any = !found.order.empty();
  world.broadcast(std::as_writable_bytes(std::span(&any, 1)), 0);
  on_all_or_none(world, [&] {
    if (any != 0 && world.rank() != 0)
      found.order = Buffer<std::uint64_t>(vertex_count(input.graph));
  });
  world.broadcast(std::as_writable_bytes(found.order.span()), 0);
  return std::move(found.order);
}

std::optional<Dataset> shared_renumbering(World& world, const Dataset& dataset,
                                          ReorderMethod method, std::uint64_t seed, bool gpu) {
  if (method == ReorderMethod::none) return {};
  const Phase phase(fmt::format("ordering vertices by {}", to_string(method)), "reorder");
  const Buffer<std::uint64_t> order = shared_order(
      world, method,
      {dataset.graph, dataset.symmetric, seed, gpu ? gpu_order_by_communities : nullptr});
  if (order.empty()) return {};
  on_all_or_none(world, [&] {  // before any rank takes memory
    require_memory_to_renumber(dataset, world.ranks_of_host().size());
  });
  std::optional<Dataset> result;
  on_all_or_none(world, [&] { result = renumbered(dataset, order.span()); });
  return result;
}

}  // namespace plait
