// Makes one rank's batches of samples on a device (sampled_batches.h).
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plait/aggregate/sampled_edges.h"
#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/nn/layers/input.h"
#include "plait/nn/operations/graph_handle.h"
#include "plait/nn/tasks/targets.h"
#include "plait/sample/cooperative.h"
#include "plait/sample/layer_edges.h"
#include "plait/sample/neighbours.h"

namespace plait {

// The graph that is sampled, and values of its vertices that layers read, on the host.
class SampledGraph {
 public:
  // The dataset outlives this.
  SampledGraph(const Dataset& dataset, const ModelConfig& model, const SampledTraining& sampled);

  const AnyCsr& csr() const { return csr_; }
  // The settings and values that samples are drawn by. Samples are disjoint if there are times.
  const SampleSettings& settings() const { return settings_; }
  SampleValues values() const;
  bool drawn_by_values() const { return settings_.disjoint || by_weight_; }
  // Tells whether layers read the weights of edges that were drawn by their weights.
  bool draws_weights() const { return loops_ && by_weight_; }
  // Tells whether edges of a hop are drawn with replacement.
  bool draws_again(std::size_t hop) const {
    return settings_.replace && settings_.fanouts[hop] != -1;
  }
  // Returns the times of these examples; nothing without times.
  std::vector<std::int64_t> times_of(std::span<const std::uint64_t> examples) const;
  bool loops() const { return loops_; }                  // each vertex gets one
  bool slot_vertices() const { return slot_vertices_; }  // layers drop edges by vertices
  std::span<const float> edge_weights() const;           // with loops; or empty: all 1
  std::span<const float> loop_weights() const { return loop_weights_; }    // or empty: all 1
  std::span<const float> normalization() const { return normalization_; }  // of GCN, or empty
  std::span<const std::uint64_t> numbers() const { return numbers_; }      // or empty
  // The same as kernels read it.
  LayerGraph view() const;

 private:
  const bool loops_, slot_vertices_, by_weight_;
  const AnyCsr csr_;
  const SampleSettings settings_;
  const SampleTimes times_;  // of the edges of csr_
  const std::vector<float> loop_weights_, normalization_;
  const std::span<const std::uint64_t> numbers_;
};

// A rank's examples of a step.
struct StepSeeds {
  std::span<const std::uint64_t> vertices;
  std::uint32_t first = 0;  // place of the first one among the examples of all ranks
  std::uint64_t key = 0;    // of the draws
};

// One hop as a layer reads it.
struct LayerSample {
  std::unique_ptr<Aggregator> edges;
  SampleScales scales;
  std::optional<RowSharing> rows;  // where its inputs come from, if not all are this rank's
};

struct MadeBatch {
  std::shared_ptr<const void> memory;  // that the rest is made in
  InputFeatures input;                 // of the first layer's inputs
  std::vector<LayerSample> layers;     // the first one's first
  SplitRows targets;                   // the first rows of the last layer, which are its own rows
  // `input` has the rows of this rank's targets and the vertices of the first layer's inputs, for
  // which the rows are to be shared (share_rows()).
  bool shares_input = false;
  std::function<void()> wait;  // lets the work of the calling thread follow; or empty
};

class SampleMaker {
 public:
  // The phases of a profile: drawing neighbours and making edges of them as layers read them;
  // features and labels of the sample.
  static constexpr std::string_view kSampling = "sample neighbours", kGathering = "gather features";

  virtual ~SampleMaker() = default;
  // Returns the batch of these examples. `dropout`: of the first layer's inputs, which may be after
  // it already. Called by one thread, which may be another than the one that computes. Throws what
  // sampling throws, and DoesNotFitError.
  virtual MadeBatch make(const StepSeeds& seeds, const DropoutStep& dropout) = 0;
};

// The dataset and the graph outlive what these return. `config` is as SampledBatches takes it.
std::unique_ptr<SampleMaker> make_cpu_samples(const Dataset& dataset, const SampledGraph& graph,
                                              const TrainConfig& config);
// Collective; on the CPU. All ranks make their batches together, of seeds that they own by the
// partition, which outlives the maker: make() is collective among the threads that call it.
std::unique_ptr<SampleMaker> make_cooperative_samples(World& world, const Dataset& dataset,
                                                      const SampledGraph& graph,
                                                      const TrainConfig& config,
                                                      const Partition& partition);
// Collective among `world`, the ranks that share out features and structure (graph_ranks()). On the
// current GPU of each rank, which holds the structure of the graph and reads the features from a
// table (table/sharded/table.h) that stands where they fit; sparse features are copied
// with each batch. Batches are prepared on a stream beside the current one of this thread, which is
// the one that computes. `ahead`: bytes of this rank's GPU that the run will need besides the table
// (sampled_bytes_ahead()). Throws DoesNotFitError on all ranks.
std::unique_ptr<SampleMaker> make_gpu_samples(World& world, const Dataset& dataset,
                                              const SampledGraph& graph, const TrainConfig& config,
                                              std::uint64_t ahead);

// Collective. The same for batches that all ranks make together, as make_cooperative_samples().
std::unique_ptr<SampleMaker> make_gpu_cooperative_samples(World& world, const Dataset& dataset,
                                                          const SampledGraph& graph,
                                                          const TrainConfig& config,
                                                          const Partition& partition,
                                                          std::uint64_t ahead);

}  // namespace plait
