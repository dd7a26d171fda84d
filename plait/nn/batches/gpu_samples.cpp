// Everything of a batch is made on the GPU, on a stream beside the one that computes: the sample,
// its edges as layers read them, their plans, and the inputs' features. Memory order: the stream
// that computes waits for an event behind all of that (MadeBatch::wait); tensors are known to both
// streams (record_stream), and the memory of a sample is used again behind an event of the stream
// that computes.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <mutex>

#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/nn/batches/gpu_batches.h"

namespace plait {
namespace {

// Memory of samples that no batch holds.
class FreeSamples {
 public:
  struct Memory {
    explicit Memory(const torch::Device& device) : used(device.type()) {}
    GpuSampleBuffers buffers;
    c10::Event used;  // by the batch before
  };

  // Returns memory that comes back, behind the work of the stream `work`, when the batch lets go of
  // it. Other batches may be made and freed meanwhile by other threads.
  static std::shared_ptr<Memory> take(const std::shared_ptr<FreeSamples>& from,
                                      const c10::Stream& work) {
    std::unique_ptr<Memory> memory;
    {
      const std::lock_guard lock(from->mutex_);
      if (!from->free_.empty()) {
        memory = std::move(from->free_.back());
        from->free_.pop_back();
      }
    }
    if (!memory) memory = std::make_unique<Memory>(work.device());
    return {memory.release(), [from, work](Memory* used) {
              std::unique_ptr<Memory> back(used);
              try {
                back->used.record(work);
                const std::lock_guard lock(from->mutex_);
                from->free_.push_back(std::move(back));
              } catch (const std::exception&) {
                // The GPU has failed, which the next wait for it tells.
              }
            }};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> free_;
};

class GpuSamples : public SampleMaker {
 public:
  GpuSamples(World& world, const Dataset& dataset, const SampledGraph& graph,
             const TrainConfig& config, std::uint64_t ahead)
      : graph_(graph), batches_(world, dataset, graph, config, ahead) {}

  MadeBatch make(const StepSeeds& seeds, const DropoutStep& dropout) override {
    use_gpu(batches_.device().index());
    const c10::StreamGuard here(batches_.prepare());
    const auto memory = FreeSamples::take(free_, batches_.work());
    memory->used.block(batches_.prepare());
    const GpuSample& sample = timed(SampleMaker::kSampling, [&]() -> const GpuSample& {
      return batches_.sampler().sample(seeds.vertices, seeds.key, memory->buffers,
                                       batches_.stream(), graph_.times_of(seeds.vertices),
                                       seeds.first);
    });
    MadeBatch made = batches_.batch(seeds.vertices);
    made.memory = memory;
    made.input = timed(SampleMaker::kGathering, [&] {
      return batches_.input(batches_.vertices(sample.vertices, sample.vertex_count), dropout);
    });
    const Timed timed(SampleMaker::kSampling);
    for (std::size_t h = sample.hops.size(); h-- > 0;)  // the first layer's hop is the last
      made.layers.push_back(batches_.layer({sample, h, h, memory}));
    batches_.end(made);
    return made;
  }

 private:
  const SampledGraph& graph_;
  const GpuBatches batches_;
  const std::shared_ptr<FreeSamples> free_ = std::make_shared<FreeSamples>();
};

}  // namespace

std::unique_ptr<SampleMaker> make_gpu_samples(World& world, const Dataset& dataset,
                                              const SampledGraph& graph, const TrainConfig& config,
                                              std::uint64_t ahead) {
  return std::make_unique<GpuSamples>(world, dataset, graph, config, ahead);
}

}  // namespace plait
