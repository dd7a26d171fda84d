// A trained model on one rank, with the features and the part of the graph that it reads.
#pragma once

#include <optional>

#include "plait/nn/model.h"
#include "plait/nn/training/checkpoint.h"

namespace plait {

class PlacedModel {
 public:
  // Collective. Puts features and graph where the route says; the model is there already. Throws
  // DoesNotFitError if they do not fit, and UsageError for a strategy that does not bring what the
  // model reads. `made_rows`: as TrainConfig's. All references outlive the object.
  PlacedModel(World& world, const Dataset& dataset, const Partition& partition, const Route& route,
              TrainedModel trained, TableSource made_rows = {});

  // Collective. Returns scores of own examples, own x classes, where the model is. Does not wait
  // for a GPU.
  torch::Tensor scores() const;

  const Model& model() const { return model_; }
  GraphHandle& graph() const { return *graph_; }

 private:
  Model model_;
  InputFeatures input_;
  GraphRef graph_;
  std::optional<GraphSet> set_;  // if graphs are labelled
};

}  // namespace plait
