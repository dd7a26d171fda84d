// A thread takes an offset or an id. The table of an id is found by a binary search among the
// places where tables begin.
#include <algorithm>

#include "plait/base/cuda/one_each.cuh"
#include "plait/store/cuda/bags.cuh"

namespace plait {
namespace {

__device__ bool is_wrong_offset(const GivenDeviceBags& a, std::uint64_t k) {
  const std::int64_t offset = a.offsets[k], ids = static_cast<std::int64_t>(a.id_count);
  if (offset < (k == 0 ? 0 : a.offsets[k - 1]) || offset > ids) return true;
  if (k == 0 && offset != 0) return true;
  return a.with_end && k + 1 == a.offset_count && offset != ids;
}

// `starts`: one per table and the end. wrong[0] becomes 1 if an offset is wrong.
__global__ void __launch_bounds__(kThreadsOfItems)
    check_offsets(const __grid_constant__ GivenDeviceBags a, std::uint64_t per_table,
                  std::uint64_t tables, std::uint64_t* starts, std::uint64_t* wrong) {
  const std::uint64_t k = item_of_thread();
  if (k < a.offset_count && is_wrong_offset(a, k)) *wrong = 1;
  if (k > tables) return;
  const std::uint64_t bag = k * per_table;
  starts[k] = bag < a.offset_count ? static_cast<std::uint64_t>(a.offsets[bag]) : a.id_count;
}

// Returns the last table that begins at id i or before; start(t) is where table t begins.
template <class Start>
__device__ std::uint64_t table_at(std::uint64_t tables, std::uint64_t i, const Start& start) {
  std::uint64_t low = 0, high = tables;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (start(middle) <= i ? low : high) = middle;
  }
  return low;
}

__global__ void __launch_bounds__(kThreadsOfItems)
    check_ids(const __grid_constant__ GivenDeviceBags a, DeviceBagTables tables,
              const std::uint64_t* starts, std::uint64_t* wrong) {
  const std::uint64_t i = item_of_thread();
  if (i >= a.id_count) return;
  const std::uint64_t t =
      table_at(tables.count, i, [&](std::uint64_t table) { return starts[table]; });
  const std::uint64_t rows = tables.rows[t];
  if (static_cast<std::uint64_t>(a.ids[i]) >= rows) *wrong = 1;
}

__global__ void __launch_bounds__(kThreadsOfItems)
    write_offsets(const __grid_constant__ GivenDeviceBags a, std::uint64_t count,
                  EdgeOffset* offsets) {
  const std::uint64_t k = item_of_thread();
  if (k < count) offsets[k] = static_cast<EdgeOffset>(a.offsets[k]);
  if (k == count) offsets[k] = a.id_count;
}

__global__ void __launch_bounds__(kThreadsOfItems)
    write_ids(const __grid_constant__ GivenDeviceBags a, DeviceBagTables tables, DeviceBags to) {
  const std::uint64_t i = item_of_thread();
  if (i >= a.id_count) return;
  const std::uint64_t t = table_at(
      tables.count, i, [&](std::uint64_t table) { return to.offsets[table * to.per_table]; });
  const std::int64_t id = a.ids[i];
  to.ids[i] = id == tables.padding[t] ? kNoRow : static_cast<Slot>(id);
  if (to.weights != nullptr) to.weights[i] = a.weights[i];
}

}  // namespace

BagCheck check_bags(const GivenDeviceBags& given, const DeviceBagTables& tables,
                    cudaStream_t stream) {
  const std::uint64_t bags = given.count(), count = tables.count;
  if (bags % count != 0 || (bags == 0 && given.id_count > 0) ||
      (given.with_end && given.offset_count == 0))
    return {};
  const FromPool pool{stream, stream};
  DeviceArray<std::uint64_t> found(count + 2, pool);  // starts, and whether something is wrong
  std::uint64_t* const wrong = found.data() + count + 1;
  check_cuda(cudaMemsetAsync(wrong, 0, sizeof(*wrong), stream), "a check of bags");
  check_offsets<<<blocks_of_items(std::max(given.offset_count, count + 1)), kThreadsOfItems, 0,
                  stream>>>(given, bags / count, count, found.data(), wrong);
  if (given.id_count > 0)
    check_ids<<<blocks_of_items(given.id_count), kThreadsOfItems, 0, stream>>>(given, tables,
                                                                               found.data(), wrong);
  check_cuda(cudaGetLastError(), "a check of bags");
  BagCheck check{.starts = std::vector<std::uint64_t>(count + 2)};
  check_cuda(cudaMemcpyAsync(check.starts.data(), found.data(), (count + 2) * sizeof(*wrong),
                             cudaMemcpyDeviceToHost, stream),
             "a check of bags");
  check_cuda(cudaStreamSynchronize(stream), "a check of bags");
  check.right = check.starts.back() == 0;
  check.starts.pop_back();
  return check;
}

void write_bags(const GivenDeviceBags& given, const DeviceBagTables& tables, const DeviceBags& to,
                cudaStream_t stream) {
  const std::uint64_t bags = given.count();
  write_offsets<<<blocks_of_items(bags + 1), kThreadsOfItems, 0, stream>>>(given, bags, to.offsets);
  if (given.id_count > 0)
    write_ids<<<blocks_of_items(given.id_count), kThreadsOfItems, 0, stream>>>(given, tables, to);
  check_cuda(cudaGetLastError(), "writing bags");
}

}  // namespace plait
