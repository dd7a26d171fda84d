// Edges between two communities become keys (community, other community), which are sorted and
// counted. Bytes: edges x 4 twice, and of edges between communities 8 for each of about ten passes
// of the sort; a label per edge comes from the cache.
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <bit>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <numeric>
#include <vector>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/lower_bound.h"
#include "plait/reorder/cuda/quotient.cuh"
#include "plait/reorder/merge_rule.h"

namespace plait {
namespace {

constexpr int kThreads = 256, kEdgesPerThread = 8;
constexpr EdgeOffset kChunk = EdgeOffset{kThreads} * kEdgesPerThread;
constexpr const char* kWhat = "the quotient graph";
constexpr std::uint32_t kNoCommunity = 0xffffffffu;
static_assert(kChunk < EdgeOffset{1} << 16);

using Count = unsigned long long;

unsigned blocks_for(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}
__device__ std::uint64_t thread_number() {
  return blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
}

template <class T>
DeviceArray<T> array_of(std::uint64_t size, cudaStream_t stream) {
  return DeviceArray<T>(size, FromPool{stream, stream});
}
template <class T>
DeviceArray<T> zeros_of(std::uint64_t size, cudaStream_t stream) {
  DeviceArray<T> zeros = array_of<T>(size, stream);
  if (size > 0) check_cuda(cudaMemsetAsync(zeros.data(), 0, size * sizeof(T), stream), kWhat);
  return zeros;
}
template <class T>
T read_back(const T* value, cudaStream_t stream) {
  T here{};
  check_cuda(cudaMemcpyAsync(&here, value, sizeof(T), cudaMemcpyDeviceToHost, stream), kWhat);
  check_cuda(cudaStreamSynchronize(stream), kWhat);
  return here;
}
template <class Act>
void with_pool_scratch(cudaStream_t stream, Act act) {
  with_scratch(kWhat, FromPool{stream, stream}, act);
}
void check_launch() { check_cuda(cudaGetLastError(), kWhat); }

// Returns the row in which an edge lies, which is one of first .. last.
__device__ std::uint64_t row_of(const EdgeOffset* offsets, std::uint64_t first, std::uint64_t last,
                                EdgeOffset edge) {
  return lower_bound(offsets, first + 1, last + 1, edge + 1) - 1;
}

struct LabelledEdges {
  const EdgeOffset* offsets;
  const Slot* neighbours;
  const std::uint32_t* labels;
  std::uint64_t rows;
  EdgeOffset edges;
  int bits;   // of a label
  bool both;  // an edge counts in both directions
};

// The labels at both ends of a thread's edges, which stand kThreads apart; equal ones at places
// after the last edge.
struct Ends {
  std::uint32_t a[kEdgesPerThread], b[kEdgesPerThread];
  bool any[kEdgesPerThread];

  __device__ Ends(const LabelledEdges& in, std::uint8_t* read) {
    __shared__ std::uint64_t bounds[2];
    const EdgeOffset begin = blockIdx.x * kChunk, end = min(begin + kChunk, in.edges);
    if (threadIdx.x % kWarp == 0 && threadIdx.x < 2 * kWarp)
      bounds[threadIdx.x / kWarp] =
          row_of(in.offsets, 0, in.rows - 1, threadIdx.x == 0 ? begin : end - 1);
    __syncthreads();
    Slot to[kEdgesPerThread];
#pragma unroll
    for (int k = 0; k < kEdgesPerThread; ++k) {
      const EdgeOffset e = begin + k * EdgeOffset{kThreads} + threadIdx.x;
      any[k] = e < end;
      to[k] = any[k] ? in.neighbours[e] : 0;
      a[k] = any[k] ? in.labels[row_of(in.offsets, bounds[0], bounds[1], e)] : 0;
    }
#pragma unroll
    for (int k = 0; k < kEdgesPerThread; ++k) {
      b[k] = any[k] ? in.labels[to[k]] : 0;
      // Most have been marked before, and reading is cheaper.
      if (read != nullptr && any[k] && read[to[k]] == 0) read[to[k]] = 1;
    }
  }
  __device__ bool inside(int k) const { return any[k] && a[k] == b[k]; }
};

// Counts edges between communities, and, by community, those inside.
__global__ void __launch_bounds__(kThreads)
    count_edges(const __grid_constant__ LabelledEdges in, Count* between, Count* inside,
                std::uint8_t* read) {
  using Sum = cub::BlockReduce<unsigned, kThreads>;
  __shared__ typename Sum::TempStorage scratch;
  __shared__ std::uint32_t common;
  const Ends ends(in, read);
  // In most blocks one community has most edges inside: that of any of them, as a guess.
  if (threadIdx.x < kWarp) {
    std::uint32_t any = kNoCommunity;
#pragma unroll
    for (int k = 0; k < kEdgesPerThread; ++k)
      if (ends.inside(k)) any = ends.a[k];
    const unsigned found = __ballot_sync(kAll, any != kNoCommunity);
    any = __shfl_sync(kAll, any, found == 0 ? 0 : __ffs(found) - 1);
    if (threadIdx.x == 0) common = any;
  }
  __syncthreads();
  const std::uint32_t guess = common;
  unsigned of_guess = 0, mine = 0;  // mine: edges between communities
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) {
    const bool inner = ends.inside(k);
    mine += ends.any[k] && !inner;
    of_guess += inner && ends.a[k] == guess;
    const bool other = inner && ends.a[k] != guess;
    if (!__any_sync(kAll, other)) continue;
    const unsigned same = __match_any_sync(kAll, other ? ends.a[k] : kNoCommunity);
    if (other && (same & ((1u << threadIdx.x % kWarp) - 1)) == 0)
      atomicAdd(inside + ends.a[k], static_cast<Count>(__popc(same)));
  }
  // Both sums at once: a block has fewer than 2^16 edges.
  const unsigned all = Sum(scratch).Sum(mine << 16 | of_guess);
  if (threadIdx.x != 0) return;
  if (all >> 16 > 0) atomicAdd(between, static_cast<Count>(all >> 16));
  if ((all & 0xffff) > 0) atomicAdd(inside + guess, static_cast<Count>(all & 0xffff));
}

// Keys of two labels have 32 bits if that is enough, else 64.
template <class Key>
__device__ Key key_of(std::uint32_t a, std::uint32_t b, int bits) {
  return static_cast<Key>(std::uint64_t{a} << bits | b);
}

// Writes the keys of edges between communities, in any order.
template <class Key>
__global__ void __launch_bounds__(kThreads)
    write_keys(const __grid_constant__ LabelledEdges in, Count* written, Key* keys) {
  using Scan = cub::BlockScan<unsigned, kThreads>;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ Count begin;
  const Ends ends(in, nullptr);
  unsigned mine = 0, before = 0, all = 0;
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) mine += ends.a[k] != ends.b[k];
  Scan(scratch).ExclusiveSum(mine, before, all);
  if (threadIdx.x == 0) begin = atomicAdd(written, static_cast<Count>(all << in.both));
  __syncthreads();
  Key* to = keys + begin + (before << in.both);
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) {
    if (ends.a[k] == ends.b[k]) continue;
    *to++ = key_of<Key>(ends.a[k], ends.b[k], in.bits);
    if (in.both) *to++ = key_of<Key>(ends.b[k], ends.a[k], in.bits);
  }
}

// Tells whether a sorted key is the first of its kind.
template <class Key>
struct IsHead {
  const Key* keys;
  __host__ __device__ std::uint64_t operator()(std::uint64_t i) const {
    return i == 0 || keys[i] != keys[i - 1];
  }
};

template <class Key>
__global__ void write_rows(const Key* keys, std::uint64_t entries, std::uint32_t communities,
                           int bits, EdgeOffset* offsets, std::uint32_t* neighbours) {
  const std::uint64_t i = thread_number();
  if (i <= communities) offsets[i] = lower_bound(keys, 0, entries, i << bits);
  if (i < entries)
    neighbours[i] = static_cast<std::uint32_t>(std::uint64_t{keys[i]} & ((1ull << bits) - 1));
}

// Sums weights by community. Lanes of one community, in most warps all, add at once.
template <class Key>
__global__ void sum_rows(const Key* keys, const std::uint64_t* weights, std::uint64_t entries,
                         int bits, Count* sums) {
  const std::uint64_t i = thread_number();
  const std::uint64_t none = ~0ull;
  const std::uint64_t row = i < entries ? std::uint64_t{keys[i]} >> bits : none;
  Count weight = i < entries ? weights[i] : 0;
  if (__all_sync(kAll, row == __shfl_sync(kAll, row, 0))) {
    for (int distance = 16; distance > 0; distance /= 2)
      weight += __shfl_xor_sync(kAll, weight, distance);
    if (threadIdx.x % kWarp != 0) return;
  }
  if (row != none) atomicAdd(sums + row, weight);
}

// Sorted keys with equal ones next to each other, whose weights are added.
template <class Key, class Weights>
DeviceQuotient from_sorted(const Key* keys, Weights weights, std::uint64_t count,
                           std::uint32_t communities, int bits, cudaStream_t stream) {
  DeviceQuotient to;
  to.communities = communities;
  DeviceArray<std::uint64_t> number = zeros_of<std::uint64_t>(1, stream);
  if (count > 0)
    with_pool_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      const auto heads = thrust::make_transform_iterator(
          thrust::counting_iterator<std::uint64_t>(0), IsHead<Key>{keys});
      return cub::DeviceReduce::Sum(scratch, bytes, heads, number.data(), count, stream);
    });
  const std::uint64_t entries = read_back(number.data(), stream);
  DeviceArray<Key> distinct = array_of<Key>(entries, stream);
  to.weights = array_of<std::uint64_t>(entries, stream);
  to.neighbours = array_of<std::uint32_t>(entries, stream);
  to.offsets = array_of<EdgeOffset>(communities + std::uint64_t{1}, stream);
  to.outer = zeros_of<std::uint64_t>(communities, stream);
  if (count > 0)
    with_pool_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceReduce::ReduceByKey(scratch, bytes, keys, distinct.data(), weights,
                                            to.weights.data(), number.data(), cuda::std::plus<>{},
                                            count, stream);
    });
  write_rows<<<blocks_for(std::max<std::uint64_t>(entries, communities + std::uint64_t{1})),
               kThreads, 0, stream>>>(distinct.data(), entries, communities, bits,
                                      to.offsets.data(), to.neighbours.data());
  if (entries > 0)
    sum_rows<<<blocks_for(entries), kThreads, 0, stream>>>(
        distinct.data(), to.weights.data(), entries, bits,
        reinterpret_cast<Count*>(to.outer.data()));
  check_launch();
  return to;
}

// Adds edges inside, once or twice, to those between communities.
__global__ void add_inside(const Count* inside, const std::uint64_t* outer, std::uint32_t count,
                           bool both, std::uint64_t* degrees) {
  const std::uint64_t c = thread_number();
  if (c < count) degrees[c] = (inside[c] << both) + outer[c];
}

// Writes the keys and weights of entries between different labels, in any order.
template <class Key>
__global__ void __launch_bounds__(kThreads)
    relabel_entries(const EdgeOffset* offsets, const std::uint32_t* neighbours,
                    const std::uint64_t* weights, EdgeOffset entries, std::uint32_t communities,
                    const std::uint32_t* labels, int bits, Count* written, Key* keys,
                    std::uint64_t* values) {
  using Scan = cub::BlockScan<unsigned, kThreads>;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ Count begin;
  __shared__ std::uint64_t bounds[2];
  const EdgeOffset first = blockIdx.x * kChunk, end = min(first + kChunk, entries);
  if (threadIdx.x % kWarp == 0 && threadIdx.x < 2 * kWarp)
    bounds[threadIdx.x / kWarp] =
        row_of(offsets, 0, communities - std::uint64_t{1}, threadIdx.x == 0 ? first : end - 1);
  __syncthreads();
  std::uint32_t a[kEdgesPerThread], b[kEdgesPerThread];
  unsigned mine = 0, before = 0, all = 0;
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) {
    const EdgeOffset e = first + k * EdgeOffset{kThreads} + threadIdx.x;
    a[k] = e < end ? labels[row_of(offsets, bounds[0], bounds[1], e)] : 0;
    b[k] = e < end ? labels[neighbours[e]] : 0;
    mine += a[k] != b[k];
  }
  Scan(scratch).ExclusiveSum(mine, before, all);
  if (threadIdx.x == 0) begin = atomicAdd(written, static_cast<Count>(all));
  __syncthreads();
  std::uint64_t at = begin + before;
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) {
    if (a[k] == b[k]) continue;
    keys[at] = key_of<Key>(a[k], b[k], bits);
    values[at++] = weights[first + k * EdgeOffset{kThreads} + threadIdx.x];
  }
}

__global__ void sum_by_label(const std::uint64_t* values, const std::uint32_t* labels,
                             std::uint32_t count, Count* sums) {
  const std::uint64_t c = thread_number();
  if (c < count) atomicAdd(sums + labels[c], static_cast<Count>(values[c]));
}

__global__ void mark_labels(const std::uint32_t* labels, std::uint64_t count,
                            std::uint32_t* marks) {
  const std::uint64_t i = thread_number();
  if (i < count) marks[labels[i]] = 1;
}
__global__ void mark_rows(const EdgeOffset* offsets, std::uint32_t count, std::uint32_t* marks) {
  const std::uint64_t c = thread_number();
  if (c < count && offsets[c] < offsets[c + 1]) marks[c] = 1;
}
__global__ void renumber(std::uint32_t* labels, std::uint64_t count, const std::uint32_t* number) {
  const std::uint64_t i = thread_number();
  if (i < count) labels[i] = number[labels[i]];
}

// before: in, for each community, the marks before it; out, its number if marked ones come first.
// Moves what the quotient has of marked communities.
__global__ void put_marked_first(const std::uint32_t* marks, std::uint32_t* before,
                                 std::uint32_t count, std::uint32_t marked,
                                 const EdgeOffset* offsets, EdgeOffset* new_offsets,
                                 const std::uint64_t* degrees, std::uint64_t* new_degrees,
                                 const std::uint64_t* outer, std::uint64_t* new_outer) {
  const std::uint64_t c = thread_number();
  if (c == count) new_offsets[marked] = offsets[count];
  if (c >= count) return;
  const std::uint32_t number = before[c];
  if (marks[c] == 0) {
    before[c] = marked + static_cast<std::uint32_t>(c) - number;
    return;
  }
  new_offsets[number] = offsets[c];
  new_degrees[number] = degrees[c];
  new_outer[number] = outer[c];
}

// Returns for each place the marks before it, and the number of all in front of the end.
struct Marks {
  DeviceArray<std::uint32_t> marks, before;
  std::uint32_t count = 0;

  Marks(std::uint64_t size, cudaStream_t stream)
      : marks(zeros_of<std::uint32_t>(size + 1, stream)),
        before(array_of<std::uint32_t>(size + 1, stream)) {}
  void scan(cudaStream_t stream) {
    with_pool_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(scratch, bytes, marks.data(), before.data(),
                                           marks.size(), stream);
    });
    count = read_back(before.data() + marks.size() - 1, stream);
  }
};

// As modularity_of() of merge.cpp: one thread per piece.
__global__ void sum_modularity(const std::uint64_t* degrees, const std::uint64_t* outer,
                               std::uint32_t communities, double total, std::uint64_t pieces,
                               double* sums) {
  const std::uint64_t piece = thread_number(), begin = piece * kModularityPiece;
  if (piece < pieces)
    sums[piece] = modularity_of_piece(
        degrees, outer, begin, min(begin + kModularityPiece, std::uint64_t{communities}), total);
}

int bits_of(std::uint32_t communities) {
  return std::max(1, static_cast<int>(std::bit_width(communities - std::uint32_t{1})));
}

// Calls act(Key{}) with the type of keys of two labels.
template <class Act>
auto with_key_of(int bits, Act act) {
  return 2 * bits <= 32 ? act(std::uint32_t{}) : act(std::uint64_t{});
}

unsigned chunks_of(EdgeOffset edges) {
  return static_cast<unsigned>((edges + kChunk - 1) / kChunk);
}

// `count`: edges between communities, once or twice; written: a zero.
template <class Key>
DeviceQuotient count_between(const LabelledEdges& edges, std::uint64_t count, Count* written,
                             std::uint32_t communities, cudaStream_t stream) {
  DeviceArray<Key> keys = array_of<Key>(count, stream), other = array_of<Key>(count, stream);
  cub::DoubleBuffer<Key> sorted(keys.data(), other.data());
  if (count > 0) {
    write_keys<<<chunks_of(edges.edges), kThreads, 0, stream>>>(edges, written, keys.data());
    check_launch();
    with_pool_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(scratch, bytes, sorted, count, 0, 2 * edges.bits,
                                            stream);
    });
  }
  return from_sorted(sorted.Current(), thrust::constant_iterator<std::uint64_t>(1), count,
                     communities, edges.bits, stream);
}

template <class Key>
DeviceQuotient add_between(const DeviceQuotient& graph, const DeviceArray<std::uint32_t>& labels,
                           std::uint32_t communities, int bits, cudaStream_t stream) {
  const EdgeOffset entries = graph.entries();
  auto keys = array_of<Key>(entries, stream), other_keys = array_of<Key>(entries, stream);
  auto values = array_of<std::uint64_t>(entries, stream),
       other_values = array_of<std::uint64_t>(entries, stream),
       written = zeros_of<std::uint64_t>(1, stream);
  if (entries > 0)
    relabel_entries<<<chunks_of(entries), kThreads, 0, stream>>>(
        graph.offsets.data(), graph.neighbours.data(), graph.weights.data(), entries,
        graph.communities, labels.data(), bits, reinterpret_cast<Count*>(written.data()),
        keys.data(), values.data());
  check_launch();
  const std::uint64_t count = read_back(written.data(), stream);
  cub::DoubleBuffer<Key> sorted(keys.data(), other_keys.data());
  cub::DoubleBuffer<std::uint64_t> weights(values.data(), other_values.data());
  if (count > 0)
    with_pool_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, sorted, weights, count, 0, 2 * bits,
                                             stream);
    });
  return from_sorted(sorted.Current(), weights.Current(), count, communities, bits, stream);
}

}  // namespace

std::uint32_t make_dense(DeviceArray<std::uint32_t>& labels, std::uint64_t bound,
                         cudaStream_t stream) {
  Marks found(bound, stream);
  mark_labels<<<blocks_for(labels.size()), kThreads, 0, stream>>>(labels.data(), labels.size(),
                                                                  found.marks.data());
  check_launch();
  found.scan(stream);
  renumber<<<blocks_for(labels.size()), kThreads, 0, stream>>>(labels.data(), labels.size(),
                                                               found.before.data());
  check_launch();
  return found.count;
}

DeviceQuotient quotient_of(const DeviceGraph& graph, const DeviceArray<std::uint32_t>& labels,
                           std::uint32_t communities, DeviceArray<std::uint8_t>& read,
                           cudaStream_t stream) {
  const int bits = bits_of(communities);
  const bool both = !graph.symmetric;
  const LabelledEdges edges{graph.offsets.data(),
                            graph.neighbours.data(),
                            labels.data(),
                            graph.vertices,
                            graph.edges(),
                            bits,
                            both};
  if (both) read = zeros_of<std::uint8_t>(graph.vertices, stream);
  DeviceArray<std::uint64_t> inside = zeros_of<std::uint64_t>(communities, stream);
  DeviceArray<std::uint64_t> counts = zeros_of<std::uint64_t>(2, stream);
  auto* const between = reinterpret_cast<Count*>(counts.data());
  if (graph.edges() > 0)
    count_edges<<<chunks_of(graph.edges()), kThreads, 0, stream>>>(
        edges, between, reinterpret_cast<Count*>(inside.data()), both ? read.data() : nullptr);
  check_launch();
  const std::uint64_t count = read_back(counts.data(), stream) << both;
  DeviceQuotient found = with_key_of(bits, [&](auto key) {
    return count_between<decltype(key)>(edges, count, between + 1, communities, stream);
  });
  found.total = graph.edges() << both;
  found.degrees = array_of<std::uint64_t>(communities, stream);
  add_inside<<<blocks_for(communities), kThreads, 0, stream>>>(
      reinterpret_cast<const Count*>(inside.data()), found.outer.data(), communities, both,
      found.degrees.data());
  check_launch();
  return found;
}

DeviceQuotient quotient_of(const DeviceQuotient& graph, const DeviceArray<std::uint32_t>& labels,
                           std::uint32_t communities, cudaStream_t stream) {
  const int bits = bits_of(communities);
  DeviceQuotient found = with_key_of(bits, [&](auto key) {
    return add_between<decltype(key)>(graph, labels, communities, bits, stream);
  });
  found.total = graph.total;
  found.degrees = zeros_of<std::uint64_t>(communities, stream);
  sum_by_label<<<blocks_for(graph.communities), kThreads, 0, stream>>>(
      graph.degrees.data(), labels.data(), graph.communities,
      reinterpret_cast<Count*>(found.degrees.data()));
  check_launch();
  return found;
}

void put_joined_first(DeviceArray<std::uint32_t>& labels, DeviceQuotient& graph,
                      cudaStream_t stream) {
  const std::uint32_t communities = graph.communities;
  Marks joined(communities, stream);
  mark_rows<<<blocks_for(communities), kThreads, 0, stream>>>(graph.offsets.data(), communities,
                                                              joined.marks.data());
  if (graph.entries() > 0)
    mark_labels<<<blocks_for(graph.entries()), kThreads, 0, stream>>>(
        graph.neighbours.data(), graph.entries(), joined.marks.data());
  check_launch();
  joined.scan(stream);
  auto offsets = array_of<EdgeOffset>(joined.count + std::uint64_t{1}, stream);
  auto degrees = array_of<std::uint64_t>(joined.count, stream),
       outer = array_of<std::uint64_t>(joined.count, stream);
  put_marked_first<<<blocks_for(communities + std::uint64_t{1}), kThreads, 0, stream>>>(
      joined.marks.data(), joined.before.data(), communities, joined.count, graph.offsets.data(),
      offsets.data(), graph.degrees.data(), degrees.data(), graph.outer.data(), outer.data());
  if (graph.entries() > 0)
    renumber<<<blocks_for(graph.entries()), kThreads, 0, stream>>>(
        graph.neighbours.data(), graph.entries(), joined.before.data());
  renumber<<<blocks_for(labels.size()), kThreads, 0, stream>>>(labels.data(), labels.size(),
                                                               joined.before.data());
  check_launch();
  graph.offsets = std::move(offsets);
  graph.degrees = std::move(degrees);
  graph.outer = std::move(outer);
  graph.communities = joined.count;
}

Quotient to_host(const DeviceQuotient& graph) {
  Quotient here;
  here.offsets = graph.offsets.to_host();
  here.degrees = graph.degrees.to_host();
  here.neighbours = Buffer<std::uint32_t>(graph.entries());
  here.weights = Buffer<std::uint64_t>(graph.entries());
  if (graph.entries() > 0) {
    copy_to_host(here.neighbours.data(), graph.neighbours.data(),
                 graph.entries() * sizeof(std::uint32_t));
    copy_to_host(here.weights.data(), graph.weights.data(),
                 graph.entries() * sizeof(std::uint64_t));
  }
  here.total = graph.total;
  return here;
}

double modularity_of(const DeviceQuotient& graph, cudaStream_t stream) {
  const std::uint64_t pieces = (graph.communities + kModularityPiece - 1) / kModularityPiece;
  DeviceArray<double> sums = array_of<double>(pieces, stream);
  if (pieces > 0)
    sum_modularity<<<blocks_for(pieces), kThreads, 0, stream>>>(
        graph.degrees.data(), graph.outer.data(), graph.communities,
        static_cast<double>(graph.total), pieces, sums.data());
  check_launch();
  const std::vector<double> here = sums.to_host();
  return std::accumulate(here.begin(), here.end(), 0.0);
}

}  // namespace plait
