// One launch serves all readers: blockIdx.y is the reader, whose arrays may be in the memory of
// another GPU. A step of few samples is bound by launches.
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/embedding/cuda/bag_edges.cuh"

namespace plait {
namespace {

// Returns 1 / the ids begin .. end - 1 that count, of a bag. Lanes that share the bag count for
// themselves: their loads are the same.
__device__ float share_of_id(const DeviceBags& bags, EdgeOffset begin, EdgeOffset end) {
  std::uint32_t count = 0;
  for (EdgeOffset e = begin; e < end; ++e) count += bags.ids[e] != kNoRow ? 1 : 0;
  return 1.0f / static_cast<float>(max(count, 1u));
}

constexpr int kBagLanes = 8;

// kBagLanes lanes work on a bag.
__global__ void __launch_bounds__(kThreadsOfItems)
    write_kernel(const __grid_constant__ DevicePieces pieces,
                 const __grid_constant__ Readers readers, const EdgeTable* tables,
                 const __grid_constant__ DeviceEdges to) {
  const DeviceBags& bags = readers.at[blockIdx.y].bags;
  const std::uint64_t bag = item_of_thread() / kBagLanes;
  if (bag >= pieces.tables * bags.per_table) return;
  const std::uint64_t t = bag / bags.per_table, b = bag % bags.per_table;
  const EdgeTable table = tables[blockIdx.y * pieces.tables + t];
  if (!table.wanted) return;
  const DevicePiece piece = pieces.at[t];
  const EdgeOffset first = bags.offsets[t * bags.per_table];
  const EdgeOffset begin = bags.offsets[bag], end = bags.offsets[bag + 1];
  const bool shares = pieces.mode == BagMode::mean && to.weights != nullptr;
  const float share = shares ? share_of_id(bags, begin, end) : 1.0f;
  for (EdgeOffset e = begin + threadIdx.x % kBagLanes; e < end; e += kBagLanes) {
    const std::uint64_t at = table.edge + e - first;
    const Slot row = own_row(pieces, piece, bags.ids[e]);
    to.rows[at] = row == kNoRow ? kNoRow : table.row + row;
    if (to.from != nullptr) to.from[at] = table.from + static_cast<Slot>(b) * table.from_step;
    if (to.places != nullptr) to.places[at] = static_cast<Slot>(e - begin);
    if (to.weights != nullptr)
      to.weights[at] = bags.weights == nullptr ? share : share * bags.weights[e];
  }
}

template <int kVec, class Number>
__device__ void copy_numbers(const Number* from, Number* to, std::uint64_t count) {
  struct alignas(kVec * sizeof(Number)) Vector {
    Number numbers[kVec];
  };
  for (std::uint64_t c = threadIdx.x % kWarp * kVec; c < count; c += kWarp * kVec)
    *reinterpret_cast<Vector*>(to + c) = *reinterpret_cast<const Vector*>(from + c);
}

// A warp works on a bag.
template <int kVec>
__global__ void __launch_bounds__(kThreadsOfItems)
    gather_kernel(const __grid_constant__ DevicePieces pieces,
                  const __grid_constant__ Readers readers, const EdgeTable* tables,
                  GatheredGradients to) {
  const ReaderBags& reader = readers.at[blockIdx.y];
  const DeviceBags& bags = reader.bags;
  const std::uint64_t bag = item_of_thread() / kWarp;
  if (bag >= pieces.tables * bags.per_table) return;
  const std::uint64_t t = bag / bags.per_table, b = bag % bags.per_table;
  const EdgeTable table = tables[blockIdx.y * pieces.tables + t];
  if (!table.gathers || bags.offsets[bag] == bags.offsets[bag + 1]) return;
  const DevicePiece piece = pieces.at[t];
  const std::uint64_t from = (b * pieces.tables + t) * pieces.width + piece.first_column;
  const std::uint64_t at = table.gathered + b * piece.columns;
  copy_numbers<kVec>(reader.gradients.sums + from, to.sums + at, piece.columns);
  if (to.places != nullptr)
    copy_numbers<kVec>(reader.gradients.places + from, to.places + at, piece.columns);
}

// A warp works on a row.
template <int kVec>
__global__ void __launch_bounds__(kThreadsOfItems)
    shared_kernel(const __grid_constant__ JoinedRows shared, std::uint64_t width,
                  const __grid_constant__ DeviceEdges to, float* values) {
  const RowsOfRank& from = shared.at[blockIdx.y];
  const std::uint64_t k = item_of_thread() / kWarp;
  if (k >= from.count) return;
  const std::uint64_t at = from.first + k;
  if (threadIdx.x % kWarp == 0) {
    to.rows[at] = from.rows[k];
    to.from[at] = static_cast<Slot>(at);
    if (to.counts != nullptr) to.counts[at] = from.counts[k];
  }
  copy_numbers<kVec>(from.values + k * width, values + at * width, width);
}

}  // namespace

OwnedEdges::OwnedEdges(std::uint64_t edges, const EdgeParts& parts, const FromPool& pool) {
  count = edges;
  memory_.add(rows, edges);
  memory_.add(from, parts.from ? edges : 0);
  memory_.add(weights, parts.weights ? edges : 0);
  memory_.add(counts, parts.counts ? edges : 0);
  memory_.add(places, parts.places ? edges : 0);
  memory_.allocate(pool);
}

std::uint64_t Readers::most_bags() const {
  std::uint64_t most = 0;
  for (int k = 0; k < count; ++k) most = std::max(most, at[k].bags.per_table);
  return most;
}

void write_edges(const DevicePieces& pieces, const Readers& readers, const EdgeTable* tables,
                 const DeviceEdges& to, cudaStream_t stream) {
  if (to.count == 0) return;
  const dim3 grid(blocks_of_items(pieces.tables * readers.most_bags() * kBagLanes),
                  static_cast<unsigned>(readers.count));
  write_kernel<<<grid, kThreadsOfItems, 0, stream>>>(pieces, readers, tables, to);
  check_cuda(cudaGetLastError(), "edges of bags");
}

void gather_gradients(const DevicePieces& pieces, const Readers& readers, const EdgeTable* tables,
                      const GatheredGradients& to, cudaStream_t stream) {
  const std::uint64_t bags = readers.most_bags();
  if (bags == 0) return;
  const dim3 grid(blocks_of_items(pieces.tables * bags * kWarp),
                  static_cast<unsigned>(readers.count));
  to.in_vectors
      ? gather_kernel<4><<<grid, kThreadsOfItems, 0, stream>>>(pieces, readers, tables, to)
      : gather_kernel<1><<<grid, kThreadsOfItems, 0, stream>>>(pieces, readers, tables, to);
  check_cuda(cudaGetLastError(), "gradients of bags");
}

void gather_shared(const JoinedRows& shared, std::uint64_t width, const DeviceEdges& to,
                   float* values, cudaStream_t stream) {
  std::uint64_t most = 0;
  for (int k = 0; k < shared.count; ++k) most = std::max(most, shared.at[k].count);
  if (most == 0) return;
  const dim3 grid(blocks_of_items(most * kWarp), static_cast<unsigned>(shared.count));
  width % 4 == 0
      ? shared_kernel<4><<<grid, kThreadsOfItems, 0, stream>>>(shared, width, to, values)
      : shared_kernel<1><<<grid, kThreadsOfItems, 0, stream>>>(shared, width, to, values);
  check_cuda(cudaGetLastError(), "sums of replicated tables");
}

}  // namespace plait
