// A thread takes an offset or an id. The table of an id is found by a binary search among the
// places where tables begin.
#include <algorithm>

#include "plait/base/cuda/one_each.cuh"
#include "plait/embedding/cuda/bags.cuh"

namespace plait {
namespace {

__device__ bool is_wrong_offset(const GivenDeviceBags& a, std::uint64_t k) {
  const std::int64_t offset = a.offsets[k], ids = static_cast<std::int64_t>(a.id_count);
  if (offset < (k == 0 ? 0 : a.offsets[k - 1]) || offset > ids) return true;
  if (k == 0 && offset != 0) return true;
  return a.with_end && k + 1 == a.offset_count && offset != ids;
}

// found: as of write_bags().
__global__ void __launch_bounds__(kThreadsOfItems)
    write_offsets(const __grid_constant__ GivenDeviceBags a, std::uint64_t count,
                  const __grid_constant__ DeviceBags to, std::uint64_t tables,
                  std::uint64_t* found) {
  const std::uint64_t k = item_of_thread();
  if (k < a.offset_count && is_wrong_offset(a, k)) found[tables + 1] = 1;
  if (k < count) to.offsets[k] = static_cast<EdgeOffset>(a.offsets[k]);
  if (k == count) to.offsets[k] = a.id_count;
  if (k > tables) return;
  const std::uint64_t bag = k * to.per_table;
  found[k] = bag < a.offset_count ? static_cast<std::uint64_t>(a.offsets[bag]) : a.id_count;
}

// Returns the last table that begins at id i or before. starts: one per table.
__device__ std::uint64_t table_at(std::uint64_t tables, std::uint64_t i,
                                  const std::uint64_t* starts) {
  std::uint64_t low = 0, high = tables;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (starts[middle] <= i ? low : high) = middle;
  }
  return low;
}

__global__ void __launch_bounds__(kThreadsOfItems)
    write_ids(const __grid_constant__ GivenDeviceBags a, DeviceBagTables tables,
              const __grid_constant__ DeviceBags to, std::uint64_t* found) {
  const std::uint64_t i = item_of_thread();
  if (i >= a.id_count) return;
  const std::uint64_t t = table_at(tables.count, i, found);
  const std::int64_t id = a.ids[i];
  const bool wrong = static_cast<std::uint64_t>(id) >= tables.rows[t];
  if (wrong) found[tables.count + 1] = 1;
  to.ids[i] = wrong || id == tables.padding[t] ? kNoRow : static_cast<Slot>(id);
  if (to.weights != nullptr) to.weights[i] = a.weights[i];
}

}  // namespace

void write_bags(const GivenDeviceBags& given, const DeviceBagTables& tables, const DeviceBags& to,
                std::uint64_t* found, cudaStream_t stream) {
  const std::uint64_t bags = given.count(), offsets = std::max(given.offset_count, bags + 1);
  check_cuda(cudaMemsetAsync(found + tables.count + 1, 0, sizeof(*found), stream), "writing bags");
  write_offsets<<<blocks_of_items(std::max(offsets, tables.count + 1)), kThreadsOfItems, 0,
                  stream>>>(given, bags, to, tables.count, found);
  if (given.id_count > 0)
    write_ids<<<blocks_of_items(given.id_count), kThreadsOfItems, 0, stream>>>(given, tables, to,
                                                                               found);
  check_cuda(cudaGetLastError(), "writing bags");
}

}  // namespace plait
