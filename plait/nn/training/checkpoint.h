// Checkpoints: the best weights under PyG's names, and all that is needed to go on training, in one
// safetensors file.
//
//   convs.L.lin.weight, convs.L.bias, ...  weights of the best epoch, and buffers of norms
//   resume.NAME                            the same after the last epoch
//   resume.adam.exp_avg.NAME, resume.adam.exp_avg_sq.NAME   moments of Adam
// Training on GPUs writes the same as on the CPU, and either goes on from the other's file.
//   metadata: format, kind, layers, hidden and all else of ModelConfig; metric, split ("split 0" or
//   "fold 3 of 10"), normalize (rows, unit or none, never auto) and steps, where training wrote the
//   file; history, best_epoch; under_way, if an epoch on samples was left; graph, the fingerprint
//   (io/fingerprint.h) of the dataset, as JSON; checksum (io/safetensors.h)
#pragma once

#include <map>
#include <string>

#include "plait/io/fingerprint.h"
#include "plait/io/safetensors.h"
#include "plait/nn/model.h"
#include "plait/nn/training/adam.h"
#include "plait/nn/training/train.h"

namespace plait {

// An epoch on samples that was left before its last step.
struct EpochUnderWay {
  std::int64_t steps = 0;      // that were taken; 0: no epoch is under way
  double milliseconds = 0;     // that they took
  std::vector<double> losses;  // by rank: the sum over its examples so far

  // Returns the sum from which a rank goes on. Another number of ranks starts from the sum of all.
  double loss_of(int rank, int ranks) const;
};

// The progress of a training run, and the settings and the graph to which it belongs.
struct TrainingState {
  // All that its epochs have in common besides the model, as in the metadata: metric, split,
  // normalize and steps. This and the graph are empty if no checkpoint is read or written.
  std::map<std::string, std::string> settings;
  Fingerprint graph;
  std::vector<EpochResult> history;
  int best_epoch = 0;
  std::int64_t steps = 1;  // of the optimiser per epoch
  EpochUnderWay under_way;
};

// Returns the setting `steps`: "whole graph", which is also meant by files without it, or all by
// which samples are drawn: fan-outs, examples of a step, weights, replacement and times if they are
// given, and the order of a renumbered graph.
std::string steps_name(const TrainConfig& config, int ranks, const Dataset& dataset);

void save_checkpoint(const std::string& path, const Model& model,
                     const std::vector<torch::Tensor>& best, const Adam& optimizer,
                     const TrainingState& training);

// Returns the model that a checkpoint describes, with the best weights, on `device`. Throws
// InputError.
Model load_model(const TensorFile& file, const std::string& path,
                 const torch::Device& device = torch::kCPU);

// Collective. Returns the content of a checkpoint's file. Throws Error on all ranks if ranks read
// different content, and InputError.
TensorFile read_checkpoint(World& world, const std::string& path);

// A model, and the normalisation of the features that it reads.
struct TrainedModel {
  Model model;
  Normalize normalize;
};

// Collective. Returns the model of a file, for a dataset. Features are normalised as in training,
// or as `config` says if the file does not tell, as files that Python writes. Throws as
// read_checkpoint(); UsageError if the dataset has no features; InputError if they are not as wide
// as the model reads them, if the model is for another task than the dataset's labels, or if
// `config` asks for another normalisation than training had.
TrainedModel load_model_for(World& world, const Dataset& dataset, const InferConfig& config,
                            const torch::Device& device = torch::kCPU);

// Sets model, best weights and optimizer to where the checkpoint was, which was read from `path`.
// `begun` tells the settings and the graph of this run. Throws InputError that names the field if
// the checkpoint's model is not the one of `model`, or another setting or graph is the
// checkpoint's.
TrainingState resume_checkpoint(const TensorFile& file, const std::string& path,
                                TrainingState begun, Model& model, std::vector<torch::Tensor>& best,
                                Adam& optimizer);

}  // namespace plait
