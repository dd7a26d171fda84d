// Makes the parts of a batch of samples on the CPU, whichever sampler has drawn the samples.
#pragma once

#include <span>

#include "plait/nn/batches/sample_maker.h"
#include "plait/sample/neighbours.h"

namespace plait {

class CpuBatches {
 public:
  // The dataset and the graph outlive this object.
  CpuBatches(const Dataset& dataset, const SampledGraph& graph, Normalize normalize)
      : dataset_(dataset), graph_(graph), normalize_(normalize) {}

  // Returns a batch without its layers: labels of the seeds and features of the inputs.
  MadeBatch batch(std::span<const std::uint64_t> seeds,
                  std::span<const std::uint64_t> inputs) const;
  // Returns a hop as a layer reads it: `hop` of the sample, which is hop `number` of the settings.
  // Its targets are the first vertices of the sample. `times`: the seeds' times, if there are any.
  LayerSample layer(const Sample& sample, std::size_t hop, std::size_t number,
                    std::span<const std::int64_t> times) const;

 private:
  const Dataset& dataset_;
  const SampledGraph& graph_;
  const Normalize normalize_;
};

}  // namespace plait
