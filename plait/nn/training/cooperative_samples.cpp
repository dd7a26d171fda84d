// Batches on the CPU that all ranks sample together.
#include "plait/nn/training/cpu_batches.h"
#include "plait/sample/cooperative.h"

namespace plait {
namespace {

class CooperativeSamples : public SampleMaker {
 public:
  CooperativeSamples(World& world, const Dataset& dataset, const SampledGraph& graph,
                     const TrainConfig& config, const Partition& partition)
      : batches_(dataset, graph, config.normalize),
        channel_(world.open_channel()),
        sampler_(graph.csr(), {.fanouts = config.sampled->fanouts, .targets = HopTargets::all}, {},
                 partition, world.rank(), *channel_) {}

  MadeBatch make(std::span<const std::uint64_t> seeds, std::uint64_t key,
                 const DropoutStep& /*dropout*/) override {
    std::vector<CooperativeHop> hops = sampler_.sample(seeds, key);
    MadeBatch made = batches_.batch(seeds, hops.back().sample.vertices);
    for (std::size_t l = hops.size(); l-- > 0;) {  // the first layer's hop is the last
      const Sample& sample = hops[l].sample;
      made.layers.push_back(batches_.layer(sample, sample.hops[0]));
      if (l + 1 < hops.size()) made.layers.back().rows = std::move(hops[l].rows);
    }
    return made;
  }

 private:
  const CpuBatches batches_;
  const std::unique_ptr<Channel> channel_;
  CooperativeSampler sampler_;
};

}  // namespace

std::unique_ptr<SampleMaker> make_cooperative_samples(World& world, const Dataset& dataset,
                                                      const SampledGraph& graph,
                                                      const TrainConfig& config,
                                                      const Partition& partition) {
  return std::make_unique<CooperativeSamples>(world, dataset, graph, config, partition);
}

}  // namespace plait
