// Operations over the edges of one hop of a sample on a GPU: the one that is current where the
// aggregator is made. This header needs no header of CUDA; a build without CUDA throws UsageError.
#pragma once

#include <atomic>
#include <memory>

#include "plait/aggregate/sampled_edges.h"

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

}  // namespace plait
