// Batches on GPUs that all ranks sample together. Each rank draws the edges of its own targets on
// its GPU, one hop at a time; between hops the hosts tell each other which vertices they need
// (CooperativeTargets). The last hop's inputs are shared like those of others: their owner reads
// the features from the table, once for all ranks, and the rows go to the other GPUs when the step
// begins (share_rows.h).
//
// One thread makes a batch after the other on one stream, so that hops use the same buffers: all
// that layers keep of a hop is copied from them on that stream.
#include <c10/core/StreamGuard.h>

#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/nn/batches/gpu_batches.h"
#include "plait/sample/cooperative.h"

namespace plait {
namespace {

// A tensor on the CPU that views numbers.
torch::Tensor view_of(std::span<const std::uint64_t> numbers) {
  return torch::from_blob(const_cast<std::uint64_t*>(numbers.data()), {std::ssize(numbers)},
                          torch::kInt64);
}

class GpuCooperativeSamples : public SampleMaker {
 public:
  GpuCooperativeSamples(World& world, const Dataset& dataset, const SampledGraph& graph,
                        const TrainConfig& config, const Partition& partition, std::uint64_t ahead)
      : batches_(world, dataset, graph, config, ahead, &partition),
        channel_(world.open_channel()),
        targets_(dataset.vertices(), partition, world.rank(), *channel_) {
    check_cooperative(graph.settings());
  }

  MadeBatch make(const StepSeeds& seeds, const DropoutStep& dropout) override {
    use_gpu(batches_.device().index());
    const c10::StreamGuard here(batches_.prepare());
    const GpuNeighbourSampler& sampler = batches_.sampler();
    MadeBatch made = batches_.batch(seeds.vertices);
    InputVertices inputs;
    targets_.begin(seeds.vertices);
    for (std::size_t h = 0; h < sampler.settings().fanouts.size(); ++h) {
      const GpuSample& sample = timed(SampleMaker::kSampling, [&]() -> const GpuSample& {
        sampler.enqueue_hop(h, targets_.vertices(), seeds.key, buffers_, batches_.stream());
        return sampler.wait(buffers_);
      });
      inputs = batches_.vertices(sample.vertices, sample.vertex_count);
      LayerSample layer = batches_.layer({sample, 0, h, nullptr});
      const torch::Tensor ids = inputs.ids.to(torch::kCPU);
      layer.rows =
          sharing(targets_.share({ids_of(ids), static_cast<std::size_t>(sample.vertex_count)}));
      made.layers.insert(made.layers.begin(),
                         std::move(layer));  // the first layer's hop is the last
    }
    made.input =
        timed(SampleMaker::kGathering, [&] { return input(std::move(inputs), dropout, made); });
    batches_.end(made);
    return made;
  }

 private:
  RowSharing sharing(SharedRows rows) const {
    RowSharing sharing{std::move(rows), {}, {}};
    sharing.sent = view_of(sharing.rows.sent).to(batches_.device());
    sharing.places = view_of(sharing.rows.places).to(batches_.device());
    sharing.rows.sent = {}, sharing.rows.places = {};
    batches_.both_use({sharing.sent, sharing.places});
    return sharing;
  }

  // Returns the features of the targets, which are to be shared for the inputs; sparse features are
  // copied from the host, for each rank that reads them.
  InputFeatures input(InputVertices inputs, const DropoutStep& dropout, MadeBatch& made) const {
    if (!batches_.has_table()) return batches_.input(std::move(inputs), dropout);
    const torch::Tensor targets = view_of(targets_.vertices()).to(batches_.device());
    const InputVertices own = batches_.vertices(ids_of(targets), targets_.vertices().size());
    const InputFeatures rows(batches_.rows(own, dropout), std::move(inputs), dropout);
    rows.also_used_on(batches_.work());
    made.shares_input = true;
    return rows;
  }

  const GpuBatches batches_;
  const std::unique_ptr<Channel> channel_;
  CooperativeTargets targets_;
  GpuSampleBuffers buffers_;
};

}  // namespace

std::unique_ptr<SampleMaker> make_gpu_cooperative_samples(World& world, const Dataset& dataset,
                                                          const SampledGraph& graph,
                                                          const TrainConfig& config,
                                                          const Partition& partition,
                                                          std::uint64_t ahead) {
  return std::make_unique<GpuCooperativeSamples>(world, dataset, graph, config, partition, ahead);
}

}  // namespace plait
