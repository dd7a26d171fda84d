#include "plait/aggregate/shared_order.h"

#include "plait/symmetric/agreement.h"

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

}  // namespace plait
