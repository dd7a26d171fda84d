// Enqueues one batch.
//
// Hops are enqueued one after the other without waiting for their counts: kernels read these in
// memory of the GPU, and the host knows bounds that follow from fan-outs. One copy at the end
// brings all counts to the host.
//
// The bytes of a hop of E edges and T targets, ids of 32 bits, D vertices found new:
//   counts   T (8 id + 16 offsets of the CSR, a sector of 32 at random) + 4 T written
//   drawing  E (32 a sector of the CSR at random + 8 place in the CSR + 4 slot written)
//            + E places looked up at random and some D..E/2 atomics, in the L2 cache if V is < 12 M
//   marking  E (4 slot + 4 place written) + E places looked up at random
//   numbers  E (4 + 4 read, 4 written) + 8 D written, and E / 4 bytes looked up at random
// The third hop of a batch of 512 with fan-out 30,30,30 in ogbn-products has 9.2 M edges: 590 MB in
// all, 295 MB of them in random sectors. At the 1.0 TB/s that random sectors of 32 bytes reach on
// an H200 and 3.5 TB/s for the rest, they take 0.29 + 0.08 ms; 28 M accesses to the L2 cache at
// some 140 G/s take 0.2 ms. So 9.7 M edges take 0.6 to 0.7 ms with the first hops and the launches
// of 24 kernels: 14 to 16 G edges a second. The sectors of a row with fewer than 240 edges are read
// several times, and come from the L1 cache.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "plait/base/error.h"
#include "plait/base/saturating.h"
#include "plait/sample/check.h"
#include "plait/sample/cuda/append_unique.cuh"
#include "plait/sample/cuda/buffers.cuh"
#include "plait/sample/cuda/draw.cuh"
#include "plait/sample/cuda/value_draws.cuh"

namespace plait {

// The arguments that all batches share.
struct SamplePlan {
  const GpuCsr& graph;
  const SampleSettings& settings;
  const GpuSampleValues& values;
  std::uint64_t max_degree;
};

// The draws of a batch: what names them, and its hops, `hops` of the settings from `first_hop` on.
struct BatchDraws {
  std::uint64_t key;
  std::uint32_t first_tree;  // HopArgs has the meaning
  std::size_t first_hop, hops;
};

// Enqueues one batch. Members end in _ where they change from hop to hop: bounds of the counts.
template <VertexId V, class Places>
class Batch {
  using Memory = GpuSampleBuffers::Memory;
  static constexpr std::uint64_t kMostNumbers = kNoPlace;  // vertices and edges stay below
  static constexpr bool kHash = std::is_same_v<Places, HashPlaces>;

 public:
  Batch(const SamplePlan& plan, const BatchDraws& draws, Memory& memory, cudaStream_t stream)
      : plan_(plan),
        graph_{plan.graph.offsets, static_cast<const V*>(plan.graph.neighbours)},
        draws_(draws),
        m_(memory),
        stream_(stream) {}

  // `there`: the seeds if they are on the GPU, else null.
  void run(std::uint64_t seeds, const GpuSeeds* there) {
    begin(seeds, there);
    for (std::size_t h = 0; h < draws_.hops; ++h) hop(h);
    end();
  }

 private:
  void begin(std::uint64_t seeds, const GpuSeeds* there) {
    seeds_ = vertices_ = targets_ = seeds;
    const std::size_t hops = draws_.hops;
    m_.hops.resize(std::max(m_.hops.size(), hops));
    m_.counts.reserve(hops + 1);
    m_.counts_here.reserve(hops + 1);
    m_.total.reserve(1);
    m_.total_here.reserve(1);
    reserve_roomy(m_.vertices, seeds);
    if (kHash) reserve_roomy(m_.trees, seeds);
    m_.times.reserve(plan_.values.timed() ? seeds : 0);
    if (there != nullptr)
      take_seeds(*there);
    else if (seeds > 0)
      copy_seeds(m_.seeds_here.data(), m_.times_here.data(), cudaMemcpyHostToDevice, seeds);
    begin_counts(m_.counts.data(), static_cast<std::uint32_t>(seeds), trees(), stream_);
    if constexpr (!kHash) {
      const std::uint64_t all = plan_.graph.vertices;
      if (all > m_.place.size()) m_.emptied = 0;
      m_.place.reserve(all);
      if (m_.emptied < all) fill_ones(m_.place, all, stream_);
      m_.emptied = 0;  // should an exception come
      enter_vertices(places(), m_.vertices.data(), nullptr, m_.counts.data(), seeds, stream_);
    } else {
      m_.emptied = 0;
      slots_ = 0;
    }
  }

  void copy_seeds(const std::uint64_t* ids, const std::int64_t* times, cudaMemcpyKind kind,
                  std::uint64_t count) {
    if (ids != nullptr)
      check_cuda(
          cudaMemcpyAsync(m_.vertices.data(), ids, count * sizeof(std::uint64_t), kind, stream_),
          "copying seeds");
    if (plan_.values.timed())
      check_cuda(
          cudaMemcpyAsync(m_.times.data(), times, count * sizeof(std::int64_t), kind, stream_),
          "copying times of seeds");
  }

  // A seed that is no vertex is replaced, and told when the sample is waited for.
  void take_seeds(const GpuSeeds& there) {
    m_.bad_seed.reserve(1);
    m_.bad_seed_here.reserve(1);
    fill_ones(m_.bad_seed, 1, stream_);
    if (there.count > 0) {
      checked_seeds(there.ids, there.count, plan_.graph.vertices, m_.vertices.data(),
                    m_.bad_seed.data(), stream_);
      copy_seeds(nullptr, there.times, cudaMemcpyDeviceToDevice, there.count);
    }
    check_cuda(cudaMemcpyAsync(m_.bad_seed_here.data(), m_.bad_seed.data(), sizeof(kNoBadSeed),
                               cudaMemcpyDeviceToHost, stream_),
               "copying seeds");
  }

  void hop(std::size_t h) {
    const std::size_t of_settings = draws_.first_hop + h;
    const std::int64_t fanout = plan_.settings.fanouts[of_settings];
    HopArgs args{.key = draws_.key,
                 .first_tree = draws_.first_tree,
                 .fanout = fanout < 0 ? HopArgs::kEverything : static_cast<std::uint64_t>(fanout),
                 .replace = plan_.settings.replace,
                 .hop = static_cast<std::uint8_t>(of_settings),
                 .counts = m_.counts.data() + h,
                 .vertices = m_.vertices.data(),
                 .trees = trees(),
                 .offsets = nullptr,
                 .edges = nullptr,
                 .values = values()};
    if (args.values.any()) {
      reserve_roomy(m_.eligible, targets_);
      args.values.eligible = m_.eligible.data();
      count_eligible(args, targets_, graph_, plan_.max_degree, stream_);
    }
    const HopBounds bounds = bounds_of(h, args);
    const std::uint64_t after = vertices_after(bounds.edges), words = words_of(bounds.edges);
    Memory::Hop& to = m_.hops[h];
    reserve_roomy(to.offsets, bounds.targets + 1);
    reserve_roomy(to.neighbours, bounds.edges);
    reserve_roomy(to.edges, bounds.edges);
    reserve_roomy(m_.slots, bounds.edges * sizeof(typename Places::Slot));
    reserve_roomy(m_.bits, words);
    reserve_roomy(m_.before, words + 1);
    reserve_keeping(m_.vertices, vertices_, after, stream_);
    if (kHash) reserve_keeping(m_.trees, vertices_, after, stream_);
    m_.tables.reserve(draw_scratch(args, plan_.max_degree));
    if constexpr (kHash) make_table(after, args.counts);
    args.vertices = m_.vertices.data(), args.trees = trees();
    args.offsets = to.offsets.data(), args.edges = to.edges.data();
    enqueue_hop(h, args, bounds);
    vertices_ = after;
    edges_ += bounds.edges;
    const bool all = plan_.settings.targets == HopTargets::all;
    targets_ = all ? after : std::min(bounds.edges, kHash ? bounds.edges : plan_.graph.vertices);
  }

  void enqueue_hop(std::size_t h, const HopArgs& args, const HopBounds& bounds) {
    auto* const slots = reinterpret_cast<typename Places::Slot*>(m_.slots.data());
    const auto scan = [&](auto counts, std::uint32_t* sums, std::uint64_t size) {
      m_.with_cub("counting edges", [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(
            scratch, bytes,
            thrust::make_transform_iterator(thrust::counting_iterator<std::uint32_t>(0), counts),
            sums, static_cast<std::uint32_t>(size), stream_);
      });
    };
    scan(EdgeCounts<std::uint32_t>{args, graph_.offsets}, args.offsets, bounds.targets + 1);
    draw_edges<V, Places>(args, bounds, graph_, plan_.max_degree, places(), slots, m_.tables.data(),
                          stream_);
    const AppendUnique<Places> unique{.places = places(),
                                      .counts = args.counts,
                                      .offsets = args.offsets,
                                      .slots = slots,
                                      .neighbours = m_.hops[h].neighbours.data(),
                                      .bits = m_.bits.data(),
                                      .before = m_.before.data(),
                                      .vertices = m_.vertices.data(),
                                      .trees = trees(),
                                      .edges_of = m_.counts.data() + h,
                                      .last = h + 1 == draws_.hops,
                                      .all_targets = plan_.settings.targets == HopTargets::all};
    mark_first_edges(unique, bounds.edges, stream_);
    scan(FirstCounts{args.counts, args.offsets, m_.bits.data()}, m_.before.data(),
         words_of(bounds.edges) + 1);
    write_numbers(unique, bounds.edges, stream_);
  }

  void end() {
    const std::size_t hops = draws_.hops;
    if constexpr (!kHash) {
      // Where the sample is small beside the graph, its vertices alone leave the places; else all
      // places are emptied before the next sample. A write at random costs a sector of 32 bytes.
      constexpr std::uint64_t kCost = 16;  // of 4 bytes each
      if (vertices_ < plan_.graph.vertices / kCost) {
        forget_vertices(places(), m_.vertices.data(), m_.counts.data() + hops, vertices_, stream_);
        m_.emptied = plan_.graph.vertices;
      }
    }
    copy_counts(hops + 1);
  }

  // Enqueues the copy of the counts of the first hops to the host.
  void copy_counts(std::size_t hops) {
    check_cuda(cudaMemcpyAsync(m_.counts_here.data(), m_.counts.data(), hops * sizeof(HopCounts),
                               cudaMemcpyDeviceToHost, stream_),
               "copying counts");
  }

  // Returns bounds for the hop by the fan-out. Where these are too large to take memory for,
  // returns the counts themselves, for which it waits.
  HopBounds bounds_of(std::size_t h, const HopArgs& args) {
    const std::uint64_t most = args.replace && plan_.max_degree > 0
                                   ? args.fanout
                                   : std::min(args.fanout, plan_.max_degree);
    const std::uint64_t of_target = args.fanout == HopArgs::kEverything ? plan_.max_degree : most;
    const std::uint64_t edges = (Bytes(targets_) * Bytes(of_target)).value;
    constexpr std::uint64_t kRoomy = GpuNeighbourSampler::kRoomyEdges / (kHash ? 2 : 1);
    if (edges <= kRoomy && seeds_ + edges_ + edges < kMostNumbers / 2) return {targets_, edges};
    const EdgeCounts<std::uint64_t> counts{args, graph_.offsets};
    m_.with_cub("counting edges", [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceReduce::Sum(
          scratch, bytes,
          thrust::make_transform_iterator(thrust::counting_iterator<std::uint32_t>(0), counts),
          m_.total.data(), static_cast<std::uint32_t>(targets_), stream_);
    });
    check_cuda(cudaMemcpyAsync(m_.total_here.data(), m_.total.data(), sizeof(std::uint64_t),
                               cudaMemcpyDeviceToHost, stream_),
               "copying counts");
    copy_counts(h + 1);
    check_cuda(cudaStreamSynchronize(stream_), "sampling on the GPU");
    const HopCounts* const counted = m_.counts_here.data();
    const std::uint64_t total = *m_.total_here.data();
    vertices_ = counted[h].vertices;
    edges_ = 0;
    for (std::size_t before = 0; before < h; ++before) edges_ += counted[before].edges;
    check_sample_size(seeds_, edges_ + total);
    return {counted[h].targets, total};
  }

  std::uint64_t vertices_after(std::uint64_t edges) const {
    const std::uint64_t grown = vertices_ + edges;
    // Seeds that repeat are vertices of their own.
    return kHash ? grown : std::min(grown, plan_.graph.vertices + seeds_);
  }

  // Makes the hash table ready for so many vertices: enters those that were found before if a new
  // one is needed.
  void make_table(std::uint64_t vertices, const HopCounts* counts) {
    const std::uint64_t wanted = std::bit_ceil(2 * std::max<std::uint64_t>(vertices, 1));
    if (wanted <= slots_) return;
    require<DoesNotFitError>(wanted <= std::uint64_t{1} << 32,
                             "a disjoint sample on a GPU may have {} vertices, but at most 2^31; "
                             "use smaller fan-outs or batches",
                             vertices);
    slots_ = wanted;
    m_.keys.reserve(slots_);
    m_.place.reserve(slots_);
    fill_ones(m_.keys, slots_, stream_);
    fill_ones(m_.place, slots_, stream_);
    enter_vertices(places(), m_.vertices.data(), trees(), counts, vertices_, stream_);
  }

  HopValues values() {
    const GpuSampleValues& given = plan_.values;
    return {.weights = given.weights,
            .edge_times = given.edge_times,
            .vertex_times = given.vertex_times,
            .sums = given.sums,
            .now = m_.times.data(),
            .last = plan_.settings.time == TimeRule::last,
            .eligible = nullptr};
  }
  std::uint32_t* trees() { return kHash ? m_.trees.data() : nullptr; }
  Places places() {
    if constexpr (kHash)
      return {m_.place.data(), m_.keys.data(), static_cast<unsigned>(64 - std::countr_zero(slots_)),
              plan_.graph.vertices};
    else
      return {m_.place.data()};
  }

  const SamplePlan& plan_;
  const GraphView<V> graph_;
  const BatchDraws draws_;
  Memory& m_;
  const cudaStream_t stream_;
  std::uint64_t seeds_ = 0, slots_ = 0;
  std::uint64_t vertices_ = 0, edges_ = 0, targets_ = 0;  // bounds
};

}  // namespace plait
