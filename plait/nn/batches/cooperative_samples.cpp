// Batches on the CPU that all ranks sample together.
#include "plait/base/profile.h"
#include "plait/nn/batches/cpu_batches.h"
#include "plait/sample/cooperative.h"

namespace plait {
namespace {

class CooperativeSamples : public SampleMaker {
 public:
  CooperativeSamples(World& world, const Dataset& dataset, const SampledGraph& graph,
                     const TrainConfig& config, const Partition& partition)
      : batches_(dataset, graph, config.normalize),
        channel_(world.open_channel()),
        sampler_(graph.csr(), graph.settings(), graph.values(), partition, world.rank(),
                 *channel_) {}

  MadeBatch make(const StepSeeds& seeds, const DropoutStep& /*dropout*/) override {
    std::vector<CooperativeHop> hops =
        timed(SampleMaker::kSampling, [&] { return sampler_.sample(seeds.vertices, seeds.key); });
    MadeBatch made = timed(SampleMaker::kGathering, [&] {
      return batches_.batch(seeds.vertices, hops.back().sample.vertices);
    });
    const Timed timed(SampleMaker::kSampling);
    for (std::size_t l = hops.size(); l-- > 0;) {  // the first layer's hop is the last
      made.layers.push_back(batches_.layer(hops[l].sample, 0, l, {}));
      if (l + 1 < hops.size()) made.layers.back().rows = {std::move(hops[l].rows), {}, {}};
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
