#include "plait/aggregate/rows_in_order.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// Tells whether the rows of rank 0, then of rank 1, and so on are in the order of numbers.
bool is_in_order(const Partition& partition) {
  return partition.is_contiguous() && partition.numbers().empty();
}

}  // namespace

template <class T>
Buffer<T> values_by_rank(World& world, std::span<const T> own) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const std::vector<std::uint64_t> sizes = gather_values(world, std::uint64_t{own.size()});
  Buffer<T> all;
  std::vector<std::span<std::byte>> receive(ranks);
  on_all_or_none(world, [&] {
    if (world.rank() != 0) return;
    std::uint64_t sum = 0;
    for (const std::uint64_t size : sizes) sum += size;
    all = Buffer<T>(sum);
    std::uint64_t at = 0;
    for (std::size_t rank = 0; rank < ranks; at += sizes[rank++])
      receive[rank] = std::as_writable_bytes(all.span().subspan(at, sizes[rank]));
  });
  std::vector<std::span<const std::byte>> send(ranks);
  send[0] = std::as_bytes(own);
  world.all_to_all(send, receive);
  return all;
}

template <class T>
Buffer<T> rows_in_order(World& world, const Partition& partition, std::span<const T> own,
                        std::uint64_t width) {
  on_all_or_none(world, [&] {
    require(own.size() == partition.size(world.rank()) * width,
            "{} values are given for {} rows, which are of {} values each", own.size(),
            partition.size(world.rank()), width);
  });
  Buffer<T> given = values_by_rank(world, own);
  if (is_in_order(partition)) return given;
  Buffer<T> all;
  on_all_or_none(world, [&] { all = Buffer<T>(given.size()); });  // not empty on rank 0 alone
  if (all.empty()) return all;
  const T* from = given.data();
  for (int part = 0; part < partition.parts(); from += partition.size(part++) * width)
    parallel_blocks(partition.size(part), 1024, [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r)
        std::copy_n(from + r * width, width, all.data() + partition.number(part, r) * width);
    });
  return all;
}

template Buffer<float> values_by_rank(World&, std::span<const float>);
template Buffer<std::int64_t> values_by_rank(World&, std::span<const std::int64_t>);
template Buffer<float> rows_in_order(World&, const Partition&, std::span<const float>,
                                     std::uint64_t);
template Buffer<double> rows_in_order(World&, const Partition&, std::span<const double>,
                                      std::uint64_t);
template Buffer<std::int64_t> rows_in_order(World&, const Partition&, std::span<const std::int64_t>,
                                            std::uint64_t);

std::uint64_t copies_in_order(const Partition& partition) { return is_in_order(partition) ? 1 : 2; }

}  // namespace plait
