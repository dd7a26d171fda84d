// The edges are read by label propagation, once a round at most 32 of each row, by the quotient
// graph twice and by the last round once. Merging works on the quotient, which is copied to the
// host when it is too small to be worth a GPU.
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/upload.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/communities/cuda/clusters.cuh"
#include "plait/communities/cuda/on_stream.cuh"
#include "plait/communities/cuda/quotient.cuh"
#include "plait/communities/cuda/warp_vote.cuh"
#include "plait/communities/moves.h"
#include "plait/reorder/community_rule.h"
#include "plait/reorder/cuda/community_order.h"
#include "plait/reorder/merge_levels.h"

namespace plait {
namespace {

__global__ void narrow(const std::uint64_t* wide, std::uint64_t count, std::uint32_t* to) {
  const std::uint64_t i = item_of_thread();
  if (i < count) to[i] = static_cast<std::uint32_t>(wide[i]);
}

__global__ void widen(const std::uint32_t* narrow, std::uint64_t count, std::uint64_t* to) {
  const std::uint64_t i = item_of_thread();
  if (i < count) to[i] = narrow[i];
}

DeviceArray<Slot> slots_of(std::span<const std::uint32_t> neighbours) {
  return uploaded(neighbours);
}
DeviceArray<Slot> slots_of(std::span<const std::uint64_t> neighbours) {
  const DeviceArray<std::uint64_t> wide = uploaded(neighbours);
  DeviceArray<Slot> slots(neighbours.size());
  if (!neighbours.empty())
    narrow<<<blocks_of_items(wide.size()), kThreadsOfItems>>>(wide.data(), wide.size(),
                                                              slots.data());
  check_launch();
  return slots;
}

DeviceGraph copy_of(const ReorderInput& input) {
  const Timed timed("copy to GPU");
  return std::visit(
      [&](const auto& graph) {
        return DeviceGraph{uploaded(graph.offsets.span()), slots_of(graph.neighbours.span()),
                           graph.vertices(), input.symmetric};
      },
      input.graph);
}

// As sort_out() of community_order.cpp: one warp per vertex.
__global__ void move_to_better(const EdgeOffset* offsets, const Slot* neighbours,
                               std::uint64_t vertices, const std::uint32_t* clusters,
                               const __grid_constant__ ClusterPlaces places, std::uint32_t* next) {
  const std::uint64_t v = item_of_thread() / kWarp;
  if (v >= vertices) return;
  const std::uint32_t mine = clusters[v];
  const std::uint32_t cluster =
      sampled_label(offsets, offsets + 1, neighbours, vertices, v, kSortingRound, clusters);
  const std::uint32_t community = cluster == kNoLabel ? kNoLabel : places.community_of(cluster);
  const std::uint32_t own = places.community_of(mine);
  const std::uint32_t best = heaviest_label(community, own, kSortingRound);
  std::uint32_t to = mine;
  if (best != own) to = heaviest_label(community == best ? cluster : kNoLabel, mine, kSortingRound);
  if (threadIdx.x % kWarp == 0) next[v] = to;
}

// Replaces the cluster of each vertex by its community, and writes the places to sort by: all
// vertices without edges come last.
__global__ void write_places(const EdgeOffset* offsets, const std::uint8_t* read,
                             std::uint64_t vertices, std::uint32_t clusters,
                             const __grid_constant__ ClusterPlaces places, std::uint32_t* labels,
                             std::uint32_t* place, std::uint32_t* numbers) {
  const std::uint64_t v = item_of_thread();
  if (v >= vertices) return;
  const std::uint32_t cluster = labels[v];
  const bool joined = offsets[v] < offsets[v + 1] || (read != nullptr && read[v] != 0);
  place[v] = joined ? places.place_of(cluster) : clusters;
  labels[v] = places.community_of(cluster);
  numbers[v] = static_cast<std::uint32_t>(v);
}

class CommunityOrder {
 public:
  explicit CommunityOrder(const ReorderInput& input) : graph_(copy_of(input)) {}

  Reordering find() {
    {
      const Timed timed("find clusters");
      labels_ = find_clusters(graph_.offsets.data(), graph_.offsets.data() + 1,
                              graph_.neighbours.data(), graph_.vertices, kCommunityRounds, nullptr);
      clusters_ = make_dense(labels_, graph_.vertices, nullptr);
    }
    const MergedClusters merged = merge_all();
    const DeviceArray<std::uint32_t> place{std::span<const std::uint32_t>(merged.place)},
        community{std::span<const std::uint32_t>(merged.community)};
    ClusterPlaces places = merged.places();
    places.place = place.data(), places.community = community.data();
    if (merged.merged) sort_out(places);
    sort_by_place(places);
    return to_host();
  }

 private:
  MergedClusters merge_all() {
    DeviceQuotient quotient = timed("quotient graph", [&] {
      DeviceQuotient all = quotient_of(graph_, labels_, clusters_, read_, nullptr);
      put_joined_first(labels_, all, nullptr);
      return all;
    });
    const Timed timed("merge clusters");
    MergeLevels levels(quotient.communities, modularity_of(quotient, nullptr));
    while (levels.go_on(quotient.entries()) && quotient.entries() >= kLargeQuotient)
      merge_level(quotient, levels);
    merge_rest(plait::to_host(quotient), levels);
    return levels.result();
  }

  static void merge_level(DeviceQuotient& quotient, MergeLevels& levels) {
    DeviceArray<std::uint32_t> labels = merge(quotient, levels.resolution(), nullptr);
    const std::uint32_t count = make_dense(labels, quotient.communities, nullptr);
    if (count == quotient.communities) return levels.add_nothing();
    quotient = quotient_of(quotient.rows(), labels, count, nullptr);
    levels.add(labels.to_host(), count, modularity_of(quotient, nullptr));
  }

  void sort_out(const ClusterPlaces& places) {
    const Timed timed("sort out");
    DeviceArray<std::uint32_t> next = numbers();
    move_to_better<<<blocks_of_items(graph_.vertices * kWarp), kThreadsOfItems>>>(
        graph_.offsets.data(), graph_.neighbours.data(), graph_.vertices, labels_.data(), places,
        next.data());
    check_launch();
    labels_ = std::move(next);
  }

  void sort_by_place(const ClusterPlaces& places) {
    const Timed timed("sort vertices");
    DeviceArray<std::uint32_t> place = numbers(), sorted = numbers(), unsorted = numbers();
    order_ = numbers();
    write_places<<<blocks_of_items(graph_.vertices), kThreadsOfItems>>>(
        graph_.offsets.data(), read_.data(), graph_.vertices, clusters_, places, labels_.data(),
        place.data(), unsorted.data());
    check_launch();
    with_stream_scratch(nullptr, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, place.data(), sorted.data(),
                                             unsorted.data(), order_.data(), graph_.vertices, 0,
                                             std::bit_width(clusters_));
    });
  }

  Reordering to_host() {
    const Timed timed("copy from GPU");
    DeviceArray<std::uint64_t> wide = array_of<std::uint64_t>(graph_.vertices, nullptr);
    widen<<<blocks_of_items(graph_.vertices), kThreadsOfItems>>>(order_.data(), graph_.vertices,
                                                                 wide.data());
    check_launch();
    Reordering found{.order = Buffer<std::uint64_t>(wide.size()),
                     .communities = std::vector<std::uint32_t>(labels_.size())};
    download(found.order.data(), wide.data(), wide.size() * sizeof(std::uint64_t));
    download(found.communities.data(), labels_.data(), labels_.size() * sizeof(std::uint32_t));
    return found;
  }

  DeviceArray<std::uint32_t> numbers() const {
    return array_of<std::uint32_t>(graph_.vertices, nullptr);
  }

  DeviceGraph graph_;
  DeviceArray<std::uint32_t> labels_;  // the cluster of each vertex, in the end its community
  DeviceArray<std::uint32_t> order_;
  DeviceArray<std::uint8_t> read_;  // marks of vertices that rows list, if the graph is directed
  std::uint32_t clusters_ = 0;
};

}  // namespace

Reordering gpu_order_by_communities(const ReorderInput& input) {
  if (vertex_count(input.graph) == 0) return {};
  require_community_numbers(vertex_count(input.graph));
  // The pool's memory is freed after an error, too, and once all arrays have been given back to it.
  struct Trim {
    ~Trim() {
      try {
        wait_for_gpu();
        trim_gpu_pool();
      } catch (const Error&) {  // the error that ends the work has been thrown
      }
    }
  } trim;
  return CommunityOrder(input).find();
}

}  // namespace plait
