#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/error.h"
#include "plait/sample/check.h"
#include "plait/sample/cuda/batch.cuh"
#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/row_sums.h"

namespace plait {

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

// --- its values ---

struct GpuValues::Arrays {
  DeviceArray<float> weights;
  DeviceArray<std::int64_t> edge_times, vertex_times;
  DeviceArray<double> sums;
  GpuSampleValues view;
};

GpuValues::GpuValues(const AnyCsr& graph, const SampleSettings& settings,
                     const SampleValues& values) {
  check_sampler(graph, settings, values);
  auto arrays = std::make_unique<Arrays>();
  arrays->weights = DeviceArray<float>(values.weights);
  arrays->edge_times = DeviceArray<std::int64_t>(values.edge_times);
  arrays->vertex_times = DeviceArray<std::int64_t>(values.vertex_times);
  if (draws_by_row_sums(settings, values)) {
    const Buffer<double> sums = row_sums(graph, values.weights);
    arrays->sums = DeviceArray<double>(sums.span());
  }
  arrays->view = {arrays->weights.data(), arrays->edge_times.data(), arrays->vertex_times.data(),
                  arrays->sums.data()};
  arrays_ = std::move(arrays);
}
GpuValues::~GpuValues() = default;
const GpuSampleValues& GpuValues::view() const { return arrays_->view; }

GpuSampleBuffers::GpuSampleBuffers() : memory_(std::make_unique<Memory>()) {}
GpuSampleBuffers::~GpuSampleBuffers() = default;

namespace {

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

GpuNeighbourSampler::GpuNeighbourSampler(const GpuCsr& graph, SampleSettings settings,
                                         const GpuSampleValues& values)
    : graph_(graph), settings_(std::move(settings)), values_(values) {
  const bool weighted = values_.weights != nullptr;
  check_settings(graph_.vertices, settings_);
  check_times(settings_, values_.timed(), weighted, graph_.edges);
  const bool by_sums = weighted && settings_.replace && !values_.timed();
  require<UsageError>(by_sums == (values_.sums != nullptr),
                      "the values on the GPU were made for other settings of the sampler");
  max_degree_ = largest_degree(graph_);
}

void GpuNeighbourSampler::enqueue(std::span<const std::uint64_t> seeds, std::uint64_t key,
                                  GpuSampleBuffers& buffers, void* stream,
                                  std::span<const std::int64_t> times,
                                  std::uint32_t first_tree) const {
  const std::uint32_t first = settings_.disjoint ? first_tree : 0;
  enqueue_hops({0, settings_.fanouts.size(), key, first}, seeds, times, buffers, stream);
}

void GpuNeighbourSampler::enqueue_hop(std::size_t hop, std::span<const std::uint64_t> seeds,
                                      std::uint64_t key, GpuSampleBuffers& buffers,
                                      void* stream) const {
  check_hop(settings_, hop);
  enqueue_hops({hop, hop + 1, key, 0}, seeds, {}, buffers, stream);
}

void GpuNeighbourSampler::enqueue_hops(const Draws& draws, std::span<const std::uint64_t> seeds,
                                       std::span<const std::int64_t> times,
                                       GpuSampleBuffers& buffers, void* stream) const {
  check_seeds(graph_.vertices, graph_.edges, values_.timed(), seeds, times);
  GpuSampleBuffers::Memory& m = buffers.memory();
  m.await();
  m.seeds_here.reserve(seeds.size());
  std::ranges::copy(seeds, m.seeds_here.data());
  m.times_here.reserve(times.size());
  std::ranges::copy(times, m.times_here.data());
  enqueue_hops(draws, seeds.size(), nullptr, buffers, stream);
}

void GpuNeighbourSampler::enqueue(const GpuSeeds& seeds, std::uint64_t key,
                                  GpuSampleBuffers& buffers, void* stream) const {
  check_sample_size(seeds.count, 0);
  require<UsageError>(!values_.timed() || seeds.count == 0 || seeds.times != nullptr,
                      "the graph has times, but the seeds have none; give one for each");
  if (graph_.vertices == 0 && seeds.count > 0) {
    std::uint64_t id = 0;
    copy_to_host(&id, seeds.ids, sizeof(id));
    throw_bad_id("seed", 0, id, 0);
  }
  buffers.memory().await();
  enqueue_hops({0, settings_.fanouts.size(), key, 0}, seeds.count, &seeds, buffers, stream);
}

void GpuNeighbourSampler::enqueue_hops(const Draws& draws, std::uint64_t count,
                                       const GpuSeeds* seeds, GpuSampleBuffers& buffers,
                                       void* stream) const {
  GpuSampleBuffers::Memory& m = buffers.memory();
  m.sample.seeds = count;
  m.seeds_there = seeds != nullptr ? seeds->ids : nullptr;
  m.hop_count = draws.end_hop - draws.begin_hop;
  m.begun = true;
  const SamplePlan plan{graph_, settings_, values_, max_degree_};
  const auto run = [&]<VertexId V, class Places>(V, std::type_identity<Places>) {
    const BatchDraws of_batch{draws.key, draws.first_tree, draws.begin_hop, m.hop_count};
    Batch<V, Places>(plan, of_batch, m, static_cast<cudaStream_t>(stream)).run(count, seeds);
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
  GpuSampleBuffers::Memory& m = buffers.memory();
  m.await();
  if (m.seeds_there != nullptr && *m.bad_seed_here.data() != kNoBadSeed) {
    std::uint64_t id = 0;
    const std::uint64_t place = *m.bad_seed_here.data();
    copy_to_host(&id, m.seeds_there + place, sizeof(id));
    throw_bad_id("seed", place, id, graph_.vertices);
  }
  GpuSample& s = m.sample;
  const std::size_t hops = m.hop_count;
  const HopCounts* const counts = m.counts_here.data();
  s.hops.clear();
  s.vertices = m.vertices.data();
  s.vertex_count = counts[hops].vertices;
  s.trees = settings_.disjoint ? m.trees.data() : nullptr;
  s.times = values_.timed() ? m.times.data() : nullptr;
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
