// Neighbour sampling on a GPU: the same sample, bit by bit, as NeighbourSampler on the CPU. This
// header needs no header of CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/sample/neighbours.h"

namespace plait {

// A CSR graph in memory that the current GPU reaches, owned by others.
struct GpuCsr {
  const EdgeOffset* offsets = nullptr;  // vertices + 1
  const void* neighbours = nullptr;     // ids of 64 bits if `wide`, else of 32 bits
  bool wide = false;
  std::uint64_t vertices = 0, edges = 0;
};

// A copy of a graph in the memory of the current GPU, which this object owns.
class GpuGraph {
 public:
  // Waits for the copy. Throws DoesNotFitError.
  explicit GpuGraph(const AnyCsr& graph);
  ~GpuGraph();

  const GpuCsr& csr() const;

 private:
  struct Arrays;
  std::unique_ptr<const Arrays> arrays_;
};

// SampleValues in memory that the current GPU reaches, owned by others. Null: there are none.
struct GpuSampleValues {
  const float* weights = nullptr;
  const std::int64_t *edge_times = nullptr, *vertex_times = nullptr;
  const double* sums = nullptr;  // row_sums(), where draws_by_row_sums()

  bool timed() const { return edge_times != nullptr || vertex_times != nullptr; }
};

// A copy of values in the memory of the current GPU, for samplers with the same settings.
class GpuValues {
 public:
  // Waits for the copy. Throws what NeighbourSampler's constructor throws.
  GpuValues(const AnyCsr& graph, const SampleSettings& settings, const SampleValues& values);
  ~GpuValues();

  const GpuSampleValues& view() const;

 private:
  struct Arrays;
  std::unique_ptr<const Arrays> arrays_;
};

// A sample in memory of the GPU; the fields mean the same as in Sample. The arrays belong to the
// buffers that it was made in.
struct GpuSample {
  struct Hop {
    std::uint64_t first_target = 0, targets = 0, edge_count = 0;
    std::uint64_t vertices = 0;                 // found so far, this hop included
    const std::uint32_t* offsets = nullptr;     // targets + 1
    const std::uint32_t* neighbours = nullptr;  // edge_count
    const EdgeOffset* edges = nullptr;          // edge_count
  };
  std::uint64_t seeds = 0, vertex_count = 0;
  const std::uint64_t* vertices = nullptr;  // ids, vertex_count
  const std::uint32_t* trees = nullptr;     // vertex_count, or null unless the sample is disjoint
  const std::int64_t* times = nullptr;      // of the seeds, or null if the graph has no times
  std::vector<Hop> hops;
};

// Copies a sample to the host. Waits for the GPU.
Sample to_host(const GpuSample& sample);

// The memory of one sample on the current GPU, and what it takes to make it. Batches that use the
// same buffers one after the other allocate only what an earlier batch did not need. A loader that
// prepares several batches has as many of these.
class GpuSampleBuffers {
 public:
  GpuSampleBuffers();
  ~GpuSampleBuffers();

  struct Memory;
  Memory& memory() { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

// Seeds in memory of the GPU, which stay there until wait() has returned.
struct GpuSeeds {
  const std::uint64_t* ids = nullptr;
  const std::int64_t* times = nullptr;  // one per seed if the graph has times
  std::uint64_t count = 0;
};

// Samples one graph. Several threads may use it at once, each with buffers of its own.
class GpuNeighbourSampler {
 public:
  // The arrays of the graph and of the values, which GpuValues has checked, outlive the sampler.
  // Reads all degrees once, and waits for the GPU. Throws UsageError for settings that
  // NeighbourSampler refuses, and for values that were made for others.
  GpuNeighbourSampler(const GpuCsr& graph, SampleSettings settings,
                      const GpuSampleValues& values = {});

  const SampleSettings& settings() const { return settings_; }

  // Enqueues on the cudaStream_t a sample of the seeds, as NeighbourSampler::sample(); reads the
  // seeds and their times before it returns. Waits for the sample that these buffers held before;
  // and for the stream, once per hop, only if the fan-outs allow so many edges that memory is taken
  // for those that there are (kRoomyEdges). Throws UsageError, and DoesNotFitError as
  // NeighbourSampler does or if the GPU has too little memory.
  void enqueue(std::span<const std::uint64_t> seeds, std::uint64_t key, GpuSampleBuffers& buffers,
               void* stream, std::span<const std::int64_t> times = {},
               std::uint32_t first_tree = 0) const;
  // Does the same for seeds that are on the GPU, behind the work of the stream. wait() throws the
  // UsageError for a seed that is no vertex.
  void enqueue(const GpuSeeds& seeds, std::uint64_t key, GpuSampleBuffers& buffers,
               void* stream) const;
  // Enqueues a sample of one hop, as NeighbourSampler::sample_hop(). Throws as enqueue().
  void enqueue_hop(std::size_t hop, std::span<const std::uint64_t> seeds, std::uint64_t key,
                   GpuSampleBuffers& buffers, void* stream) const;
  // Waits for the sample that was enqueued last in these buffers, and returns it. It is valid until
  // the next enqueue().
  const GpuSample& wait(GpuSampleBuffers& buffers) const;
  // Does both.
  const GpuSample& sample(std::span<const std::uint64_t> seeds, std::uint64_t key,
                          GpuSampleBuffers& buffers, void* stream,
                          std::span<const std::int64_t> times = {},
                          std::uint32_t first_tree = 0) const {
    enqueue(seeds, key, buffers, stream, times, first_tree);
    return wait(buffers);
  }

  // The most edges of a hop for which memory is taken by the fan-outs alone; half of them if
  // samples are disjoint, which take more memory per edge.
  static constexpr std::uint64_t kRoomyEdges = std::uint64_t{1} << 25;
  // The most bytes of scratch memory of draws by values, unless a single row needs more.
  static constexpr std::uint64_t kMostValueScratch = std::uint64_t{1} << 28;

 private:
  struct Draws {
    std::size_t begin_hop, end_hop;
    std::uint64_t key;
    std::uint32_t first_tree;
  };
  void enqueue_hops(const Draws& draws, std::span<const std::uint64_t> seeds,
                    std::span<const std::int64_t> times, GpuSampleBuffers& buffers,
                    void* stream) const;
  // `seeds`: null if they are on the host, in the buffers.
  void enqueue_hops(const Draws& draws, std::uint64_t count, const GpuSeeds* seeds,
                    GpuSampleBuffers& buffers, void* stream) const;

  GpuCsr graph_;
  SampleSettings settings_;
  GpuSampleValues values_;
  std::uint64_t max_degree_ = 0;
};

}  // namespace plait
