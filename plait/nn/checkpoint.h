// Checkpoints: the best weights under PyG's names, and all that is needed to go on training, in one
// safetensors file.
//
//   convs.L.lin.weight, convs.L.bias, ...  weights of the best epoch, and what norms keep
//   resume.NAME                            the same after the last epoch
//   resume.adam.exp_avg.NAME, resume.adam.exp_avg_sq.NAME   moments of Adam
// What was written by training on GPUs is the same as on the CPU, and either goes on from the
// other.
//   metadata: format, kind, layers, hidden and all else of ModelConfig, metric, history,
//   best_epoch; graph, the fingerprint (io/fingerprint.h) of the dataset, as JSON; checksum
//   (io/safetensors.h)
#pragma once

#include <string>

#include "plait/io/fingerprint.h"
#include "plait/io/safetensors.h"
#include "plait/nn/adam.h"
#include "plait/nn/model.h"
#include "plait/nn/train.h"

namespace plait {

// What a training run has reached, and what on.
struct TrainingState {
  std::string metric;  // by its name
  Fingerprint graph;   // empty: not needed, as nothing is kept
  std::vector<EpochResult> history;
  int best_epoch = 0;
};

void save_checkpoint(const std::string& path, const Model& model,
                     const std::vector<torch::Tensor>& best, const Adam& optimizer,
                     const TrainingState& training);

// The model that a checkpoint describes, with the best weights, on `device`. Throws InputError.
Model load_model(const TensorFile& file, const std::string& path,
                 const torch::Device& device = torch::kCPU);

// The content of a checkpoint's file, once it is the same on every rank. Collective. Throws Error
// on all ranks if it is not, InputError.
TensorFile read_checkpoint(World& world, const std::string& path);

// The model of a file, for a dataset. Collective. Throws as read_checkpoint(); UsageError if the
// dataset has no features, InputError if they are not as wide as the model reads them, or what it
// scores is not what the dataset has labels of.
Model load_model_for(World& world, const Dataset& dataset, const std::string& path,
                     const torch::Device& device = torch::kCPU);

// Sets model, best weights and optimizer to where the checkpoint was, which was read from `path`.
// `begun` tells the metric and the graph of this run. Throws InputError that names the field if the
// checkpoint's model is not the one of `model`, another metric chose its best, or it was trained on
// another graph.
TrainingState resume_checkpoint(const TensorFile& file, const std::string& path,
                                TrainingState begun, Model& model, std::vector<torch::Tensor>& best,
                                Adam& optimizer);

}  // namespace plait
