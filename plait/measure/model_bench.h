// Times a whole model on a graph that is spread over ranks: its inference, and steps of its
// training. What each strategy computes is compared before it is timed.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/measure/bench.h"
#include "plait/measure/made_data.h"
#include "plait/nn/config.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait {

// The figures of one strategy.
struct ModelTimes {
  double setup_s = 0;       // placing features, graph and weights, on the slowest rank
  Times times;              // of inference, or of a training step
  std::uint64_t bytes = 0;  // moved between ranks, for the rank that moves most, each time
  // How far the result is from the first strategy's: score_difference(), or the greatest relative
  // difference of a loss. 0 for the first strategy.
  double difference = 0;
};

// Returns the greatest difference of two results, rows x classes, on any device. The difference of
// a row is relative to its greatest score, or to the median of the rows' greatest scores where that
// is larger, as the scores of a row may cancel. A result that is not finite differs by 1e30. 0 for
// no rows. Compares on the CPU, a block of rows at a time.
double score_difference(const torch::Tensor& scores, const torch::Tensor& expected);

// Collective. Returns for each route the reason for which its inference, or its training if that is
// asked for, cannot fit into memory whatever the edges of the graph are; or an empty text. The
// counts are of a graph with dense features and labels of vertices.
std::vector<std::string> bench_refusals(World& world, const GraphCounts& counts,
                                        const TrainConfig& config, std::span<const Route> routes,
                                        bool training);

class ModelBench {
 public:
  // So many steps come before all that are timed. The first does what is done once, and on GPUs the
  // last is recorded (training/recorded.h). Their results are compared.
  static constexpr int kWarmUp = 3;
  // Results of strategies agree if they differ by less than this.
  static constexpr double kTolerance = 1e-4;

  // Collective. `config` has all settings but the route. What the dataset lacks is made
  // (with_made_data()). References outlive the object. Throws DoesNotFitError on all ranks if the
  // labels do not fit.
  ModelBench(World& world, Dataset dataset, const Partition& partition, TrainConfig config,
             const MadeData& made);

  // Collective, before anything is timed. Returns refusals as bench_refusals() does, but by the
  // edges of the graph. If it is called, no other routes are timed. Scores are kept, in the host's
  // memory, only if there are several routes to compare.
  std::vector<std::string> plan(std::span<const Route> routes, bool training);

  const Dataset& dataset() const { return dataset_; }

  // Collective. Time scores of all examples without gradients, and whole steps of training: scores,
  // loss, gradients and their sum over ranks, Adam. Throw DoesNotFitError before anything large is
  // allocated, MismatchError if the result is not the first strategy's, Error if it is not finite.
  ModelTimes time_inference(const Route& route, const BenchEffort& effort);
  ModelTimes time_training(const Route& route, const BenchEffort& effort);

  // The number of weights that are learnt; 0 before the first inference.
  std::int64_t parameters() const { return parameters_; }
  // The losses of the steps that come before all that are timed, by the first strategy; empty
  // without training.
  const std::vector<double>& losses() const { return losses_; }

 private:
  // Returns the bytes of each rank's scores.
  std::vector<std::uint64_t> score_bytes() const;

  World& world_;
  const Dataset dataset_;
  const Partition& partition_;
  TrainConfig config_;
  bool keeps_scores_ = true;
  torch::Tensor scores_;  // of own examples, by the first strategy; on the CPU
  std::vector<double> losses_;
  std::int64_t parameters_ = 0;
};

}  // namespace plait
