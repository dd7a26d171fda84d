#include "plait/apps/spread_quotient.h"

#include <utility>

#include "plait/apps/weak_components.h"
#include "plait/partition/partition.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// Collective. Returns where the rows of each rank begin, and the number of rows: of the sum of
// parts of a quotient, whose rows have no more entries than those of all parts.
std::vector<std::uint64_t> cut_rows(World& world, const Quotient& part) {
  std::vector<EdgeOffset> offsets(part.offsets);
  world.all_reduce_sum(offsets);
  return even_cuts(offsets, world.size());
}

// Collective. Sends the values begins[r] .. ends[r] - 1 to rank r, and fills received[r] with its.
template <class T, class Received>
void exchange(World& world, const T* values, auto&& begin_of, auto&& end_of,
              std::vector<Received>& received) {
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  for (std::size_t rank = 0; rank < received.size(); ++rank) {
    send.push_back(std::as_bytes(std::span(values + begin_of(rank), values + end_of(rank))));
    receive.push_back(
        std::as_writable_bytes(std::span(received[rank].data(), received[rank].size())));
  }
  world.all_to_all(send, receive);
}

}  // namespace

SpreadQuotient spread(World& world, Quotient part) {
  SpreadQuotient mine;
  if (world.size() == 1) {
    mine.entries = part.neighbours.size();
    mine.rows = std::move(part);
    return mine;
  }
  const auto ranks = static_cast<std::size_t>(world.size()),
             rank = static_cast<std::size_t>(world.rank());
  const std::vector<std::uint64_t> cuts = cut_rows(world, part);
  mine.first = static_cast<std::uint32_t>(cuts[rank]);
  std::vector<std::vector<EdgeOffset>> offsets(
      ranks, std::vector<EdgeOffset>(cuts[rank + 1] - cuts[rank] + std::size_t{1}));
  exchange(
      world, part.offsets.data(), [&](std::size_t r) { return cuts[r]; },
      [&](std::size_t r) { return cuts[r + 1] + std::size_t{1}; }, offsets);
  const auto begin_of = [&](std::size_t r) { return part.offsets[cuts[r]]; };
  const auto end_of = [&](std::size_t r) { return part.offsets[cuts[r + 1]]; };
  std::vector<Buffer<std::uint32_t>> neighbours;
  std::vector<Buffer<std::uint64_t>> weights;
  for (std::vector<EdgeOffset>& of_rank : offsets) {
    const EdgeOffset first = of_rank.front();
    for (EdgeOffset& offset : of_rank) offset -= first;
    neighbours.emplace_back(of_rank.back());
    weights.emplace_back(of_rank.back());
  }
  exchange(world, part.neighbours.data(), begin_of, end_of, neighbours);
  exchange(world, part.weights.data(), begin_of, end_of, weights);
  part.neighbours = {};
  part.weights = {};
  std::vector<Quotient> parts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    parts[r].offsets = std::move(offsets[r]);
    parts[r].neighbours = std::move(neighbours[r]);
    parts[r].weights = std::move(weights[r]);
  }
  mine.rows = sum_of(parts, mine.first, part.communities());
  mine.rows.total = part.total;
  mine.rows.degrees = std::move(part.degrees);
  world.all_reduce_sum(mine.rows.degrees);
  mine.entries = mine.rows.neighbours.size();
  world.all_reduce_sum(std::span(&mine.entries, 1));
  return mine;
}

Quotient whole_of(World& world, SpreadQuotient spread) {
  if (world.size() == 1) return std::move(spread.rows);
  Quotient whole;
  whole.total = spread.rows.total;
  whole.offsets = {0};
  for (const auto& offsets : gather_vectors(world, spread.rows.offsets)) {
    const EdgeOffset before = whole.offsets.back();
    for (std::size_t i = 1; i < offsets.size(); ++i) whole.offsets.push_back(before + offsets[i]);
  }
  whole.neighbours = gather_joined(world, spread.rows.neighbours);
  whole.weights = gather_joined(world, spread.rows.weights);
  whole.degrees = std::move(spread.rows.degrees);
  return whole;
}

std::vector<std::uint32_t> joined_forest(World& world, const std::vector<std::uint32_t>& parents) {
  std::vector<std::uint32_t> all = parents;
  if (world.size() == 1) return all;
  for (const auto& of_rank : gather_vectors(world, parents))
    for (std::uint32_t v = 0; v < all.size(); ++v) join_trees(all.data(), v, of_rank[v]);
  return all;
}

}  // namespace plait
