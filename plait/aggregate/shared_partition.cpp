#include "plait/aggregate/shared_partition.h"

#include <fmt/format.h>

#include "plait/symmetric/agreement.h"
#include "plait/world/phase.h"

namespace plait {

Partition shared_partition(World& world, const Dataset& dataset, PartitionScheme scheme,
                           std::uint64_t seed, std::optional<Partition> made) {
  const Phase phase(fmt::format("partitioning by {}", to_string(scheme)), "partition");
  const auto find = [&] {
    return made ? *std::move(made) : make_partition(scheme, dataset, world.size(), seed);
  };
  if (scheme != PartitionScheme::metis || world.size() == 1) return find();
  Buffer<std::uint32_t> owner;
  on_all_or_none(world, [&] {
    owner = Buffer<std::uint32_t>(dataset.vertices());
    if (world.rank() != 0) return;
    const Partition found = find();
    for (std::uint64_t v = 0; v < owner.size(); ++v)
      owner[v] = static_cast<std::uint32_t>(found.owner(v));
  });
  world.broadcast(std::as_writable_bytes(owner.span()), 0);
  Partition partition = Partition::of_owners(world.size(), std::move(owner));
  partition.set_numbers(dataset.numbers);
  return partition;
}

}  // namespace plait
