// Operations over the edges of one hop of a sample on a GPU: the one that is current where the
// aggregator is made. This header needs no header of CUDA; a build without CUDA throws UsageError.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "plait/aggregate/sample_counts.h"
#include "plait/aggregate/sampled_edges.h"
#include "plait/kernels/cuda/padded_copy.h"

namespace plait {

// Two streams of a GPU (cudaStream_t), which may be the same and must outlive the aggregator.
struct SampleStreams {
  void* prepare = nullptr;  // on which edges are turned round and planned
  void* work = nullptr;     // on which operations are enqueued
};

// SampledEdges in memory of the GPU.
struct GpuSampledEdges {
  std::uint64_t own = 0, inputs = 0, edges = 0;
  const EdgeOffset* offsets = nullptr;      // own + 1
  const Slot* sources = nullptr;            // edges
  const float* weights = nullptr;           // edges, or null
  const std::uint64_t* vertices = nullptr;  // inputs, or null
  std::shared_ptr<const void> arrays;       // what owns them
};

// Tells whether gradients are asked of the edges of a layer, which sets it. The batches after that
// have their edges turned round in advance.
using WantsGradients = std::shared_ptr<std::atomic<bool>>;

// Returns an aggregator of these edges, which are there when the work of the stream `prepare` is
// done. It may be made on one thread, while another one uses an aggregator of the batch before.
// Operations are enqueued and are not collective. Only the first gradient, where `gradients` did
// not announce it, and degree() and edge_counts() wait for the GPU. Results have the same bits each
// time. The caller lets `work` wait for `prepare`. Throws DoesNotFitError, and UsageError for 2^31
// edges and more.
std::unique_ptr<Aggregator> make_gpu_sample_aggregator(GpuSampledEdges edges,
                                                       const SampleStreams& streams,
                                                       WantsGradients gradients);

// Returns the counts of a sample; `sample` is from make_gpu_sample_aggregator().
SampleCounts sample_counts(const Aggregator& sample);

// Returns aggregators with room for samples of at most these counts, one per layer, whose arrays
// keep their addresses and whose operations are launched alike for all samples, so that they can be
// recorded and replayed (CUDA graphs) when another sample has been moved in. Own rows and inputs
// are as many as there is room for; those that no row of the sample stands in have no edges.
// Operations come one after the other on the stream, and share memory that grows in the first call
// of each, which is not to be recorded. degree() and edge_counts() are of all rows. Throws
// DoesNotFitError.
std::vector<std::unique_ptr<Aggregator>> make_gpu_sample_rooms(std::span<const SampleCounts> rooms,
                                                               void* stream);
// Appends the copies that move a sample into a room that it fits (fits()). They must be enqueued on
// the room's stream, before the sample is destroyed.
void move_in(const Aggregator& sample, const Aggregator& room, std::vector<PaddedCopy>& copies);

}  // namespace plait
