// The parts of a batch of samples on the CPU, whoever has sampled.
#pragma once

#include <span>

#include "plait/nn/training/sample_maker.h"
#include "plait/sample/neighbours.h"

namespace plait {

class CpuBatches {
 public:
  // The dataset and the graph outlive this.
  CpuBatches(const Dataset& dataset, const SampledGraph& graph, Normalize normalize)
      : dataset_(dataset), graph_(graph), normalize_(normalize) {}

  // Returns a batch without its layers: labels of the seeds and features of the inputs.
  MadeBatch batch(std::span<const std::uint64_t> seeds,
                  std::span<const std::uint64_t> inputs) const;
  // Returns a hop as a layer reads it. Its targets are the first vertices of the sample.
  LayerSample layer(const Sample& sample, const Sample::Hop& hop) const;

 private:
  const Dataset& dataset_;
  const SampledGraph& graph_;
  const Normalize normalize_;
};

}  // namespace plait
