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
// all, of which 295 MB are random sectors. At the 1.0 TB/s that random sectors of 32 bytes reach on
// an H200 and 3.5 TB/s for the rest, they take 0.29 + 0.08 ms; 28 M accesses to the L2 cache at
// some 140 G/s take 0.2 ms. So 9.7 M edges take 0.6 to 0.7 ms with the first hops and the launches
// of 24 kernels: 14 to 16 G edges a second. The sectors of a row with fewer than 240 edges are read
// several times, and come from the L1 cache.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/error.h"
#include "plait/base/saturating.h"
#include "plait/sample/check.h"
#include "plait/sample/cuda/append_unique.cuh"
#include "plait/sample/cuda/draw.cuh"
#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/draw.h"

namespace plait {
namespace {

constexpr std::uint64_t kMostNumbers = kNoPlace;  // vertices and edges of a sample stay below

// Host memory from which and to which the GPU copies while the host goes on.
template <class T>
class PinnedArray {
 public:
  PinnedArray() = default;
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  T* data() { return data_; }
  // As DeviceArray's.
  void reserve(std::size_t size) {
    if (size <= size_) return;
    cudaFreeHost(std::exchange(data_, nullptr));
    size_ = 0;
    check_cuda(cudaMallocHost(reinterpret_cast<void**>(&data_), size * sizeof(T)), "host memory");
    size_ = size;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// A little more is taken than is asked for, so that batches of nearly equal sizes soon fit.
template <class T>
void reserve_roomy(DeviceArray<T>& array, std::uint64_t size) {
  if (size > array.size()) array.reserve(size + size / 8);
}

// The same, and keeps the first `used` values. Waits for the stream if the array grows.
template <class T>
void reserve_keeping(DeviceArray<T>& array, std::uint64_t used, std::uint64_t size,
                     cudaStream_t stream) {
  if (size <= array.size()) return;
  DeviceArray<T> larger(size + size / 8);
  check_cuda(cudaMemcpyAsync(larger.data(), array.data(),
                             std::min<std::uint64_t>(used, array.size()) * sizeof(T),
                             cudaMemcpyDeviceToDevice, stream),
             "a copy on the GPU");
  check_cuda(cudaStreamSynchronize(stream), "work on the GPU");
  array = std::move(larger);
}

template <class T>
void fill_ones(DeviceArray<T>& array, std::uint64_t size, cudaStream_t stream) {
  if (size > 0)
    check_cuda(cudaMemsetAsync(array.data(), 0xff, size * sizeof(T), stream), "emptying a table");
}

}  // namespace

// --- the graph ---

struct GpuGraph::Arrays {
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<std::uint32_t> narrow;
  DeviceArray<std::uint64_t> wide;
  GpuCsr csr;
};

GpuGraph::GpuGraph(const AnyCsr& graph) {
  auto arrays = std::make_unique<Arrays>();
  std::visit(
      [&]<VertexId V>(const Csr<V>& csr) {
        constexpr bool kWide = sizeof(V) == 8;
        arrays->offsets = DeviceArray<EdgeOffset>(csr.offsets.span());
        const auto put = [&](auto& neighbours) -> const void* {
          if constexpr (std::is_same_v<decltype(neighbours), DeviceArray<V>&>)
            neighbours = DeviceArray<V>(csr.neighbours.span());
          return neighbours.data();
        };
        arrays->csr = {arrays->offsets.data(), kWide ? put(arrays->wide) : put(arrays->narrow),
                       kWide, csr.vertices(), csr.edges()};
      },
      graph);
  arrays_ = std::move(arrays);
}
GpuGraph::~GpuGraph() = default;
const GpuCsr& GpuGraph::csr() const { return arrays_->csr; }

// --- buffers ---

struct GpuSampleBuffers::Memory {
  struct Hop {
    DeviceArray<std::uint32_t> offsets, neighbours;
    DeviceArray<EdgeOffset> edges;
  };
  std::vector<Hop> hops;
  DeviceArray<std::uint64_t> vertices;
  DeviceArray<std::uint32_t> trees;
  DeviceArray<HopCounts> counts;  // by hop, and one more
  // What one hop leaves to the next to overwrite.
  DeviceArray<std::byte> slots, scratch;
  DeviceArray<std::uint32_t> bits, before;
  DeviceArray<std::uint64_t> tables, total;
  // Places (places.cuh): those of vertices, or slots of a hash table and its keys.
  DeviceArray<std::uint32_t> place;
  DeviceArray<HashPlaces::Key> keys;
  std::uint64_t emptied = 0;  // places from the first on that hold no vertex between samples
  // On the host.
  PinnedArray<std::uint64_t> seeds_here, total_here;
  PinnedArray<HopCounts> counts_here;
  DeviceEvent done;
  bool begun = false, pending = false;  // begun, not pending: an exception came in between
  GpuSample sample;

  // Lets CUB act with scratch memory that stays.
  template <class Act>
  void with_cub(std::string_view what, Act act) {
    std::size_t bytes = 0;
    check_cuda(act(nullptr, bytes), what);
    scratch.reserve(std::max<std::size_t>(bytes, 1));
    check_cuda(act(scratch.data(), bytes), what);
  }
  void await() {
    const bool whole = std::exchange(pending, false);
    if (std::exchange(begun, false))
      check_cuda(whole ? cudaEventSynchronize(done.get()) : cudaDeviceSynchronize(),
                 "sampling on the GPU");
  }
};

GpuSampleBuffers::GpuSampleBuffers() : memory_(std::make_unique<Memory>()) {}
GpuSampleBuffers::~GpuSampleBuffers() = default;

// --- a batch ---

namespace {

using Memory = GpuSampleBuffers::Memory;

// What is the same for all batches.
struct Plan {
  const GpuCsr& graph;
  const SampleSettings& settings;
  std::uint64_t max_degree;
};

// Enqueues one batch. Members end in _ where they change from hop to hop: bounds of the counts.
template <VertexId V, class Places>
class Batch {
  static constexpr bool kHash = std::is_same_v<Places, HashPlaces>;

 public:
  Batch(const Plan& plan, std::uint64_t key, Memory& memory, cudaStream_t stream)
      : plan_(plan),
        graph_{plan.graph.offsets, static_cast<const V*>(plan.graph.neighbours)},
        key_(key),
        m_(memory),
        stream_(stream) {}

  void run(std::uint64_t seeds) {
    begin(seeds);
    for (std::size_t h = 0; h < plan_.settings.fanouts.size(); ++h) hop(h);
    end();
  }

 private:
  void begin(std::uint64_t seeds) {
    seeds_ = vertices_ = targets_ = seeds;
    const std::size_t hops = plan_.settings.fanouts.size();
    m_.hops.resize(std::max(m_.hops.size(), hops));
    m_.counts.reserve(hops + 1);
    m_.counts_here.reserve(hops + 1);
    m_.total.reserve(1);
    m_.total_here.reserve(1);
    reserve_roomy(m_.vertices, seeds);
    if (kHash) reserve_roomy(m_.trees, seeds);
    if (seeds > 0)
      check_cuda(cudaMemcpyAsync(m_.vertices.data(), m_.seeds_here.data(),
                                 seeds * sizeof(std::uint64_t), cudaMemcpyHostToDevice, stream_),
                 "copying seeds");
    begin_counts(m_.counts.data(), static_cast<std::uint32_t>(seeds), trees(), stream_);
    if constexpr (!kHash) {
      const std::uint64_t all = plan_.graph.vertices;
      if (all > m_.place.size()) m_.emptied = 0;
      m_.place.reserve(all);
      if (m_.emptied < all) fill_ones(m_.place, m_.place.size(), stream_);
      m_.emptied = 0;  // should an exception come
      enter_vertices(places(), m_.vertices.data(), nullptr, m_.counts.data(), seeds, stream_);
    } else {
      m_.emptied = 0;
      slots_ = 0;
    }
  }

  void hop(std::size_t h) {
    const std::int64_t fanout = plan_.settings.fanouts[h];
    HopArgs args{.key = key_,
                 .fanout = fanout < 0 ? HopArgs::kEverything : static_cast<std::uint64_t>(fanout),
                 .replace = plan_.settings.replace,
                 .hop = static_cast<std::uint8_t>(h),
                 .counts = m_.counts.data() + h,
                 .vertices = m_.vertices.data(),
                 .trees = trees(),
                 .offsets = nullptr,
                 .edges = nullptr};
    const HopBounds bounds = bounds_of(args);
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
    enqueue_hop(args, bounds);
    vertices_ = after;
    const bool all = plan_.settings.targets == Targets::all;
    targets_ = all ? after : std::min(bounds.edges, kHash ? bounds.edges : plan_.graph.vertices);
  }

  void enqueue_hop(const HopArgs& args, const HopBounds& bounds) {
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
    const std::size_t h = args.hop;
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
                                      .last = h + 1 == plan_.settings.fanouts.size(),
                                      .all_targets = plan_.settings.targets == Targets::all};
    mark_first_edges(unique, bounds.edges, stream_);
    scan(FirstCounts{args.counts, args.offsets, m_.bits.data()}, m_.before.data(),
         words_of(bounds.edges) + 1);
    write_numbers(unique, bounds.edges, stream_);
  }

  void end() {
    const std::size_t hops = plan_.settings.fanouts.size();
    if constexpr (!kHash) {
      // Where the sample is small beside the graph, its vertices alone leave the places; else all
      // places are emptied before the next sample. A write at random costs a sector of 32 bytes.
      constexpr std::uint64_t kCost = 16;  // of 4 bytes each
      if (vertices_ < plan_.graph.vertices / kCost) {
        forget_vertices(places(), m_.vertices.data(), m_.counts.data() + hops, vertices_, stream_);
        m_.emptied = plan_.graph.vertices;
      }
    }
    check_cuda(cudaMemcpyAsync(m_.counts_here.data(), m_.counts.data(),
                               (hops + 1) * sizeof(HopCounts), cudaMemcpyDeviceToHost, stream_),
               "copying counts");
  }

  // Returns bounds for the hop by the fan-out. Where these are too large to take memory for,
  // returns the counts themselves, for which it waits.
  HopBounds bounds_of(const HopArgs& args) {
    const std::uint64_t most = args.replace && plan_.max_degree > 0
                                   ? args.fanout
                                   : std::min(args.fanout, plan_.max_degree);
    const std::uint64_t of_target = args.fanout == HopArgs::kEverything ? plan_.max_degree : most;
    const std::uint64_t edges = (Bytes(targets_) * Bytes(of_target)).value;
    if (edges <= GpuNeighbourSampler::kRoomyEdges && vertices_ + edges < kMostNumbers / 2)
      return {targets_, edges};
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
    check_cuda(cudaMemcpyAsync(m_.counts_here.data(), args.counts, sizeof(HopCounts),
                               cudaMemcpyDeviceToHost, stream_),
               "copying counts");
    check_cuda(cudaStreamSynchronize(stream_), "sampling on the GPU");
    const HopCounts found = *m_.counts_here.data();
    const std::uint64_t total = *m_.total_here.data();
    vertices_ = found.vertices;
    check_sample_size(total + vertices_, "vertices, or edges in a hop");
    return {found.targets, total};
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

  std::uint32_t* trees() { return kHash ? m_.trees.data() : nullptr; }
  Places places() {
    if constexpr (kHash)
      return {m_.place.data(), m_.keys.data(), static_cast<unsigned>(64 - std::countr_zero(slots_)),
              plan_.graph.vertices};
    else
      return {m_.place.data()};
  }

  const Plan& plan_;
  const GraphView<V> graph_;
  const std::uint64_t key_;
  Memory& m_;
  const cudaStream_t stream_;
  std::uint64_t seeds_ = 0, slots_ = 0;
  std::uint64_t vertices_ = 0, targets_ = 0;  // bounds
};

template <class T>
RawVector<T> to_raw_vector(const T* data, std::uint64_t size) {
  RawVector<T> values(size);
  if (size > 0) copy_to_host(values.data(), data, size * sizeof(T));
  return values;
}

struct Degree {
  const EdgeOffset* offsets;
  __device__ std::uint64_t operator()(std::uint64_t v) const { return offsets[v + 1] - offsets[v]; }
};

std::uint64_t largest_degree(const GpuCsr& graph) {
  if (graph.vertices == 0) return 0;
  DeviceArray<std::uint64_t> largest(1);
  with_scratch("reading degrees", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceReduce::Max(
        scratch, bytes,
        thrust::make_transform_iterator(thrust::counting_iterator<std::uint64_t>(0),
                                        Degree{graph.offsets}),
        largest.data(), graph.vertices, nullptr);
  });
  return largest.to_host()[0];
}

}  // namespace

Sample to_host(const GpuSample& sample) {
  Sample s;
  s.seeds = sample.seeds;
  s.vertices = to_raw_vector(sample.vertices, sample.vertex_count);
  if (sample.trees != nullptr) s.trees = to_raw_vector(sample.trees, sample.vertex_count);
  for (const GpuSample::Hop& hop : sample.hops)
    s.hops.push_back({.first_target = hop.first_target,
                      .offsets = to_raw_vector(hop.offsets, hop.targets + 1),
                      .neighbours = to_raw_vector(hop.neighbours, hop.edge_count),
                      .edges = to_raw_vector(hop.edges, hop.edge_count),
                      .vertices = hop.vertices});
  return s;
}

// --- the sampler ---

GpuNeighbourSampler::GpuNeighbourSampler(const GpuCsr& graph, SampleSettings settings)
    : graph_(graph), settings_(std::move(settings)) {
  check_settings(graph_.vertices, settings_);
  require<UsageError>(settings_.time == TimeRule::uniform,
                      "the latest edges cannot be taken on a GPU yet; sample on the CPU");
  max_degree_ = largest_degree(graph_);
}

void GpuNeighbourSampler::enqueue(std::span<const std::uint64_t> seeds, std::uint64_t key,
                                  GpuSampleBuffers& buffers, void* stream) const {
  check_seed_ids(graph_.vertices, seeds);
  Memory& m = buffers.memory();
  m.await();
  m.seeds_here.reserve(seeds.size());
  std::ranges::copy(seeds, m.seeds_here.data());
  m.sample.seeds = seeds.size();
  m.begun = true;
  const Plan plan{graph_, settings_, max_degree_};
  const auto run = [&]<VertexId V, class Places>(V, std::type_identity<Places>) {
    Batch<V, Places>(plan, key, m, static_cast<cudaStream_t>(stream)).run(seeds.size());
  };
  const auto by_places = [&]<VertexId V>(V id) {
    if (settings_.disjoint)
      run(id, std::type_identity<HashPlaces>{});
    else
      run(id, std::type_identity<DirectPlaces<V>>{});
  };
  graph_.wide ? by_places(std::uint64_t{0}) : by_places(std::uint32_t{0});
  m.done.record(static_cast<cudaStream_t>(stream));
  m.pending = true;
}

const GpuSample& GpuNeighbourSampler::wait(GpuSampleBuffers& buffers) const {
  Memory& m = buffers.memory();
  m.await();
  GpuSample& s = m.sample;
  const std::size_t hops = settings_.fanouts.size();
  const HopCounts* const counts = m.counts_here.data();
  s.hops.clear();
  s.vertices = m.vertices.data();
  s.vertex_count = counts[hops].vertices;
  s.trees = settings_.disjoint ? m.trees.data() : nullptr;
  for (std::size_t h = 0; h < hops; ++h)
    s.hops.push_back({.first_target = counts[h].first_target,
                      .targets = counts[h].targets,
                      .edge_count = counts[h].edges,
                      .vertices = counts[h + 1].vertices,
                      .offsets = m.hops[h].offsets.data(),
                      .neighbours = m.hops[h].neighbours.data(),
                      .edges = m.hops[h].edges.data()});
  return s;
}

}  // namespace plait
