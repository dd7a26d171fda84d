// The parts of a batch of samples on a GPU, whoever has drawn its edges: the structure of the
// graph, the table of features, and what layers read of a hop. All is enqueued on a stream beside
// the one that computes (sample_maker.h).
#pragma once

#include <c10/core/Stream.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plait/aggregate/cuda/sampled_edges.h"
#include "plait/nn/batches/sample_maker.h"
#include "plait/partition/partition.h"
#include "plait/sample/cuda/neighbours.h"
#include "plait/table/sharded/cuda/gpu_array.h"
#include "plait/table/sharded/table.h"

namespace plait {

class GpuBatches {
 public:
  // Collective, as make_gpu_samples(). `owners`: if features are shared out over GPUs with their
  // vertices, the partition of these vertices, which outlives this; else null.
  GpuBatches(World& world, const Dataset& dataset, const SampledGraph& graph,
             const TrainConfig& config, std::uint64_t ahead, const Partition* owners = nullptr);

  const torch::Device& device() const { return device_; }
  // The stream that computes, and the one on which batches are prepared, which must be this
  // thread's current one in calls below.
  const c10::Stream& work() const { return work_; }
  const c10::Stream& prepare() const { return prepare_; }
  void* stream() const { return prepare_.native_handle(); }
  const GpuNeighbourSampler& sampler() const { return *sampler_; }
  // Tells whether features stand in the table; else they are sparse.
  bool has_table() const { return table_ != nullptr; }

  // Returns a batch without its layers and its input: the labels of the seeds.
  MadeBatch batch(std::span<const std::uint64_t> seeds) const;
  // Returns vertices whose ids are in memory of the GPU, with their numbers, there.
  InputVertices vertices(const std::uint64_t* ids, std::uint64_t count) const;
  // Returns rows of the table after dropout, or sparse features. vertices: on the GPU.
  torch::Tensor rows(const InputVertices& vertices, const DropoutStep& dropout) const;
  InputFeatures input(InputVertices vertices, const DropoutStep& dropout) const;

  // A hop as layer() takes it: hop `hop` of the sample, which is hop `number` of the settings.
  struct Hop {
    const GpuSample& sample;
    std::size_t hop, number;
    std::shared_ptr<const void> memory;  // of the sample, for as long as the layer; or null: copied
  };
  // Returns what a layer reads of a hop.
  LayerSample layer(Hop of) const;

  // Lets go of these tensors' memory behind the work of both streams.
  void both_use(std::initializer_list<torch::Tensor> tensors) const;
  // Ends a batch: the stream that computes waits for all that was enqueued for it.
  void end(MadeBatch& made) const;

 private:
  void place_structure(World& world, bool sharded);
  std::unique_ptr<Table> table_of(World& world, std::uint64_t ahead, const Partition* owners) const;
  LayerGraph graph_view() const;

  const Dataset& dataset_;
  const SampledGraph& graph_;
  const Normalize normalize_;
  const torch::Device device_;
  const c10::Stream work_, prepare_;
  std::vector<std::unique_ptr<GpuArray>> arrays_;  // of the three below
  GpuCsr structure_;
  const float* weights_ = nullptr;  // of edges, or null: all 1
  GpuSampleValues values_;          // in the same arrays
  std::optional<GpuNeighbourSampler> sampler_;
  torch::Tensor loop_weights_, normalization_, numbers_;
  std::unique_ptr<Table> table_;
  std::vector<WantsGradients> gradients_;  // by layer
};

}  // namespace plait
