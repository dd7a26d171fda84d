// Neighbour sampling as Python sees it: torch.classes.plait.NeighbourSampler, which samples where
// the graph's tensors are, and torch.ops.plait.sample_key.
#include "plait/base/process_owned.h"
#include "plait/sample/draw.h"
#include "python/neighbour_sampling.h"
#include "python/operations.h"
#include "python/sample_tensors.h"

namespace plait {
namespace {

using torch::Tensor;

class SamplerHandle : public torch::CustomClassHolder {
 public:
  SamplerHandle(std::unique_ptr<NeighbourSampling> sampling, const torch::Device& device)
      : sampling_(process_owned(std::move(sampling))), device_(device) {}

  // Seeds and times are on the CPU, or where the graph is.
  PygSample sample(const Tensor& seeds, std::int64_t key, const OptionalTensor& times) {
    const auto place = [&](const Tensor& t) {
      return t.is_cpu() ? torch::Device(torch::kCPU) : device_;
    };
    const Tensor ids = checked_array(seeds, "seeds", torch::kInt64, place(seeds));
    const OptionalTensor moments =
        checked_values(times, ids.numel(), "times", torch::kInt64, place(times.value_or(ids)));
    return with_python_errors(
        [&] { return sampling_->sample(ids, static_cast<std::uint64_t>(key), moments); });
  }

 private:
  const ProcessOwned<NeighbourSampling> sampling_;
  const torch::Device device_;
};

// The tensors must not be changed while the sampler lives, which reads them.
c10::intrusive_ptr<SamplerHandle> make_sampler(const Tensor& rowptr, const Tensor& col,
                                               std::vector<std::int64_t> fanouts, bool replace,
                                               bool disjoint, bool all_targets, bool last,
                                               const OptionalTensor& weights,
                                               const OptionalTensor& edge_times,
                                               const OptionalTensor& vertex_times) {
  const torch::Device device = rowptr.is_cuda() ? rowptr.device() : torch::Device(torch::kCPU);
  const Tensor rows = checked_array(rowptr, "rowptr", torch::kInt64, device);
  const Tensor neighbours = checked_ids(col, "col", device);
  const std::int64_t vertices = rows.numel() - 1, edges = neighbours.numel();
  const auto checked = [&](const OptionalTensor& t, std::int64_t size, const char* name,
                           torch::ScalarType type) {
    return checked_values(t, size, name, type, device);
  };
  SampledTensors graph{
      .rowptr = rows,
      .col = neighbours,
      .weights = checked(weights, edges, "weights", torch::kFloat32),
      .edge_times = checked(edge_times, edges, "edge_times", torch::kInt64),
      .vertex_times = checked(vertex_times, vertices, "vertex_times", torch::kInt64)};
  return with_python_errors([&] {
    const auto make = device.is_cuda() ? make_gpu_sampling : make_cpu_sampling;
    return c10::make_intrusive<SamplerHandle>(
        make(std::move(graph), {.fanouts = std::move(fanouts),
                                .replace = replace,
                                .disjoint = disjoint,
                                .targets = all_targets ? HopTargets::all : HopTargets::newest,
                                .time = last ? TimeRule::last : TimeRule::uniform}),
        device);
  });
}

std::int64_t key_of_batch(std::int64_t seed, std::int64_t batch) {
  return static_cast<std::int64_t>(
      sample_key(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(batch)));
}

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.class_<SamplerHandle>("NeighbourSampler")
      .def(torch::init(&make_sampler))
      .def("sample", [](const c10::intrusive_ptr<SamplerHandle>& sampler, const Tensor& seeds,
                        std::int64_t key, const OptionalTensor& times) {
        return sampler->sample(seeds, key, times);
      });
  m.def("sample_key(int seed, int batch) -> int", &key_of_batch);
}

}  // namespace
}  // namespace plait
