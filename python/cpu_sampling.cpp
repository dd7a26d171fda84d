// Neighbour sampling on the CPU. Calls take no lock while they sample: nothing that they use is
// shared, except the workspaces that wait.
#include "plait/base/parallel.h"
#include "plait/base/spares.h"
#include "plait/world/launch.h"
#include "python/neighbour_sampling.h"

namespace plait {
namespace {

class CpuSampling : public NeighbourSampling {
 public:
  CpuSampling(SampledTensors graph, SampleSettings settings)
      : graph_(std::move(graph)),
        sampler_(checked_csr(graph_.rowptr, graph_.col), std::move(settings),
                 {span_of<float>(graph_.weights), span_of<std::int64_t>(graph_.edge_times),
                  span_of<std::int64_t>(graph_.vertex_times)}) {}

  PygSample sample(const torch::Tensor& seeds, std::uint64_t key,
                   const OptionalTensor& times) override {
    const ThreadCount threads(thread_share());
    const auto workspace = workspaces_.borrow([&] { return sampler_.workspace(); });
    const Sample found =
        sampler_.sample(ids_in(seeds), key, *workspace, span_of<std::int64_t>(times));
    return pyg_sample(found, found.vertices.size(), sampler_.settings().disjoint, raw_tensor,
                      [&](const SampleColumns& to) { write_columns(found, to); });
  }

 private:
  const SampledTensors graph_;  // which the sampler views
  const NeighbourSampler sampler_;
  Spares<NeighbourSampler::Workspace> workspaces_;
};

}  // namespace

std::unique_ptr<NeighbourSampling> make_cpu_sampling(SampledTensors graph,
                                                     SampleSettings settings) {
  const ThreadCount threads(thread_share());
  return std::make_unique<CpuSampling>(std::move(graph), std::move(settings));
}

}  // namespace plait
