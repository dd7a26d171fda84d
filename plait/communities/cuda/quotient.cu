// Edges between two communities become keys (community, other community), which are sorted and
// counted. Bytes: edges x 4 twice, and of edges between communities 8 for each of about ten passes
// of the sort; a label per edge comes from the cache.
#include <thrust/iterator/constant_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <numeric>
#include <vector>

#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/upload.cuh"
#include "plait/communities/cuda/labelled_edges.cuh"
#include "plait/communities/cuda/on_stream.cuh"
#include "plait/communities/cuda/quotient.cuh"
#include "plait/communities/cuda/sorted_keys.cuh"
#include "plait/communities/cuda/warp_vote.cuh"
#include "plait/communities/moves_rule.h"

namespace plait {
namespace {

// Adds edges inside, once or twice, to those between communities.
__global__ void add_inside(const Count* inside, const std::uint64_t* outer, std::uint32_t count,
                           bool both, std::uint64_t* degrees) {
  const std::uint64_t c = item_of_thread();
  if (c < count) degrees[c] = (inside[c] << both) + outer[c];
}

// Adds the edge ends of rows to those of their communities. Lanes of one community, in many warps
// all, add at once.
__global__ void sum_degrees(const __grid_constant__ WeightedRows graph, const std::uint32_t* labels,
                            Count* sums) {
  const std::uint64_t row = item_of_thread();
  const std::uint32_t vertex = row < graph.rows ? graph.vertex(row) : 0;
  const std::uint32_t label = row < graph.rows ? labels[vertex] : kNoLabel;
  Count degree = row < graph.rows ? graph.degrees[vertex] : 0;
  if (__all_sync(kAll, label == __shfl_sync(kAll, label, 0))) {
    degree = sum_of_warp(degree);
    if (threadIdx.x % kWarp != 0) return;
  }
  if (label != kNoLabel) atomicAdd(sums + label, degree);
}

// As modularity_of() of moves.cpp: one thread per piece.
__global__ void sum_modularity(const std::uint64_t* degrees, const std::uint64_t* outer,
                               std::uint32_t communities, double total, double resolution,
                               std::uint64_t pieces, double* sums) {
  const std::uint64_t piece = item_of_thread(), begin = piece * kModularityPiece;
  if (piece < pieces)
    sums[piece] = modularity_of_piece(degrees, outer, begin,
                                      min(begin + kModularityPiece, std::uint64_t{communities}),
                                      total, resolution);
}

// Returns the quotient of `count` edges between communities, where edges of both directions count
// twice. `written` is a zero.
template <class Key>
DeviceQuotient count_between(const LabelledEdges& edges, std::uint64_t count, Count* written,
                             std::uint32_t communities, cudaStream_t stream) {
  DeviceArray<Key> keys = array_of<Key>(count, stream), other = array_of<Key>(count, stream);
  cub::DoubleBuffer<Key> sorted(keys.data(), other.data());
  if (count > 0) {
    write_keys(edges, KeysOut<Key>{written, keys.data()}, stream);
    with_stream_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(scratch, bytes, sorted, count, 0, 2 * edges.bits,
                                            stream);
    });
  }
  return quotient_of_sorted(sorted.Current(), thrust::constant_iterator<std::uint64_t>(1), count,
                            communities, edges.bits, stream);
}

// Returns the quotient of entries between communities, whose weights are added.
template <class Key>
DeviceQuotient add_between(const LabelledEdges& entries, std::uint32_t communities,
                           cudaStream_t stream) {
  auto keys = array_of<Key>(entries.edges, stream),
       other_keys = array_of<Key>(entries.edges, stream);
  auto values = array_of<std::uint64_t>(entries.edges, stream),
       other_values = array_of<std::uint64_t>(entries.edges, stream),
       written = zeros_of<std::uint64_t>(1, stream);
  write_keys(entries, KeysOut<Key>{counts_in(written), keys.data(), values.data()}, stream);
  const std::uint64_t count = read_back(written.data(), stream);
  cub::DoubleBuffer<Key> sorted(keys.data(), other_keys.data());
  cub::DoubleBuffer<std::uint64_t> weights(values.data(), other_values.data());
  if (count > 0)
    with_stream_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, sorted, weights, count, 0,
                                             2 * entries.bits, stream);
    });
  return quotient_of_sorted(sorted.Current(), weights.Current(), count, communities, entries.bits,
                            stream);
}

}  // namespace

DeviceQuotient quotient_of(const DeviceGraph& graph, const DeviceArray<std::uint32_t>& labels,
                           std::uint32_t communities, DeviceArray<std::uint8_t>& read,
                           cudaStream_t stream) {
  const bool both = !graph.symmetric;
  const LabelledEdges edges{.offsets = graph.offsets.data(),
                            .neighbours = graph.neighbours.data(),
                            .labels = labels.data(),
                            .rows = graph.vertices,
                            .edges = graph.edges(),
                            .bits = bits_of(communities),
                            .both = both};
  if (both) read = zeros_of<std::uint8_t>(graph.vertices, stream);
  auto inside = zeros_of<std::uint64_t>(communities, stream);
  auto counts = zeros_of<std::uint64_t>(2, stream);  // edges between communities; keys written
  count_edges(edges, counts_in(counts), counts_in(inside), both ? read.data() : nullptr, stream);
  const std::uint64_t count = read_back(counts.data(), stream) << both;
  DeviceQuotient found = with_key_of(edges.bits, [&](auto key) {
    return count_between<decltype(key)>(edges, count, counts_in(counts) + 1, communities, stream);
  });
  found.total = graph.edges() << both;
  found.degrees = array_of<std::uint64_t>(communities, stream);
  add_inside<<<blocks_of_items(communities), kThreadsOfItems, 0, stream>>>(
      counts_in(inside), found.outer.data(), communities, both, found.degrees.data());
  check_launch();
  return found;
}

DeviceQuotient quotient_of(const WeightedRows& graph, const DeviceArray<std::uint32_t>& labels,
                           std::uint32_t communities, cudaStream_t stream) {
  const LabelledEdges edges{.offsets = graph.begin,
                            .neighbours = graph.neighbours,
                            .labels = labels.data(),
                            .vertices = graph.vertices,
                            .weights = graph.weights,
                            .rows = graph.rows,
                            .edges = graph.entries,
                            .bits = bits_of(communities),
                            .both = false};
  DeviceQuotient found = with_key_of(edges.bits, [&](auto key) {
    using Key = decltype(key);
    if (graph.weights != nullptr) return add_between<Key>(edges, communities, stream);
    auto inside = zeros_of<std::uint64_t>(communities, stream);
    auto counts = zeros_of<std::uint64_t>(2, stream);  // edges between communities; keys written
    count_edges(edges, counts_in(counts), counts_in(inside), nullptr, stream);
    return count_between<Key>(edges, read_back(counts.data(), stream), counts_in(counts) + 1,
                              communities, stream);
  });
  found.total = graph.total;
  found.degrees = zeros_of<std::uint64_t>(communities, stream);
  if (graph.rows > 0)
    sum_degrees<<<blocks_of_items(graph.rows), kThreadsOfItems, 0, stream>>>(
        graph, labels.data(), counts_in(found.degrees));
  check_launch();
  return found;
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

DeviceQuotient to_gpu(const Quotient& graph) {
  DeviceQuotient there;
  there.offsets = uploaded(std::span<const EdgeOffset>(graph.offsets));
  there.neighbours = uploaded(graph.neighbours.span());
  there.weights = uploaded(graph.weights.span());
  there.degrees = uploaded(std::span<const std::uint64_t>(graph.degrees));
  there.total = graph.total;
  there.communities = graph.communities();
  return there;
}

double modularity_of(const DeviceQuotient& graph, cudaStream_t stream, double resolution) {
  const std::uint64_t pieces = (graph.communities + kModularityPiece - 1) / kModularityPiece;
  DeviceArray<double> sums = array_of<double>(pieces, stream);
  if (pieces > 0)
    sum_modularity<<<blocks_of_items(pieces), kThreadsOfItems, 0, stream>>>(
        graph.degrees.data(), graph.outer.data(), graph.communities,
        static_cast<double>(graph.total), resolution, pieces, sums.data());
  check_launch();
  const std::vector<double> here = sums.to_host();
  return std::accumulate(here.begin(), here.end(), 0.0);
}

}  // namespace plait
