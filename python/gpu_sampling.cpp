// Neighbour sampling on a GPU. A sample stands in buffers that a later one overwrites; its columns
// are copied into tensors of the current stream.
//
// Memory order: a call samples and copies on the thread's current stream, and the host waits for
// the sample, but not for the copies. Buffers go back with an event behind these, for which the
// stream waits that uses them next. The graph's tensors are read by samples alone, so that none is
// in use when the last call has returned.
#include <c10/core/Event.h>

#include <map>
#include <mutex>

#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/base/spares.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/sample/check.h"
#include "plait/sample/cuda/columns.h"
#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/row_sums.h"
#include "plait/world/launch.h"
#include "python/neighbour_sampling.h"

namespace plait {

inline std::uint64_t edges_of(const GpuSample::Hop& hop) { return hop.edge_count; }

namespace {

struct UsedBuffers {
  GpuSampleBuffers buffers;
  c10::Event used{torch::kCUDA};  // by the sample before
};
using BufferPool = Spares<UsedBuffers>;

// Returns the buffers of a GPU. Its samplers share them as long as there is a sampler: the samplers
// of a graph with many types of edges are used one after the other.
std::shared_ptr<BufferPool> pool_of(const torch::Device& device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, std::weak_ptr<BufferPool>> pools;
  const std::lock_guard lock(mutex);
  std::weak_ptr<BufferPool>& kept = pools[device.index()];
  std::shared_ptr<BufferPool> pool = kept.lock();
  if (!pool) kept = pool = std::make_shared<BufferPool>();
  return pool;
}

OptionalTensor on_host(const OptionalTensor& t) { return t ? OptionalTensor(t->cpu()) : t; }

template <class T>
const T* values_in(const OptionalTensor& t) {
  return t && t->numel() > 0 ? t->const_data_ptr<T>() : nullptr;
}

class GpuSampling : public NeighbourSampling {
 public:
  GpuSampling(SampledTensors graph, SampleSettings settings)
      : device_(graph.rowptr.device()), graph_(std::move(graph)), pool_(pool_of(device_)) {
    check_on_host(settings);
    // The sampler reads degrees on the default stream.
    current_torch_stream(device_).synchronize();
    const GpuCsr csr{.offsets = reinterpret_cast<const EdgeOffset*>(
                         graph_.rowptr.const_data_ptr<std::int64_t>()),
                     .neighbours = graph_.col.const_data_ptr(),
                     .wide = graph_.col.scalar_type() == torch::kInt64,
                     .vertices = static_cast<std::uint64_t>(graph_.rowptr.numel() - 1),
                     .edges = static_cast<std::uint64_t>(graph_.col.numel())};
    const GpuSampleValues values{.weights = values_in<float>(graph_.weights),
                                 .edge_times = values_in<std::int64_t>(graph_.edge_times),
                                 .vertex_times = values_in<std::int64_t>(graph_.vertex_times),
                                 .sums = values_in<double>(sums_)};
    sampler_ = std::make_unique<GpuNeighbourSampler>(csr, std::move(settings), values);
  }

  PygSample sample(const torch::Tensor& seeds, std::uint64_t key,
                   const OptionalTensor& times) override {
    const OnGpuOf gpu(device_);
    const c10::Stream stream = current_torch_stream(device_);
    const auto memory = pool_->borrow([] { return std::make_unique<UsedBuffers>(); });
    memory->used.block(stream);
    const GpuSample& found = [&]() -> const GpuSample& {
      try {
        return sampled(seeds, key, times, memory->buffers, stream.native_handle());
      } catch (...) {  // the hops before may still read the graph
        stream.synchronize();
        throw;
      }
    }();
    const auto empty = [&](std::uint64_t size) {
      return torch::empty({static_cast<std::int64_t>(size)},
                          torch::device(device_).dtype(torch::kInt64));
    };
    return pyg_sample(found, found.vertex_count, sampler_->settings().disjoint, empty,
                      [&](const SampleColumns& to) {
                        gpu_write_columns(found, to, stream.native_handle());
                        memory->used.record(stream);
                      });
  }

 private:
  const GpuSample& sampled(const torch::Tensor& seeds, std::uint64_t key,
                           const OptionalTensor& times, GpuSampleBuffers& buffers, void* stream) {
    if (seeds.is_cpu())
      return sampler_->sample(ids_in(seeds), key, buffers, stream,
                              span_of<std::int64_t>(on_host(times)));
    require<UsageError>(
        times.has_value() == (graph_.edge_times || graph_.vertex_times) || graph_.col.numel() == 0,
        "the seeds have times if edges or vertices have any, and only then");
    const OptionalTensor there = times ? OptionalTensor(times->to(device_)) : times;
    sampler_->enqueue({.ids = ids_in(seeds).data(),
                       .times = values_in<std::int64_t>(there),
                       .count = ids_in(seeds).size()},
                      key, buffers, stream);
    return sampler_->wait(buffers);
  }

  // Checks the graph and its values, as a sampler on the CPU does, and sums up its rows.
  void check_on_host(const SampleSettings& settings) {
    const OptionalTensor weights = on_host(graph_.weights);
    const OptionalTensor edge_times = on_host(graph_.edge_times);
    const OptionalTensor vertex_times = on_host(graph_.vertex_times);
    const AnyCsr csr = checked_csr(graph_.rowptr.cpu(), graph_.col.cpu());
    const SampleValues values{span_of<float>(weights), span_of<std::int64_t>(edge_times),
                              span_of<std::int64_t>(vertex_times)};
    check_sampler(csr, settings, values);
    if (!draws_by_row_sums(settings, values)) return;
    Buffer<double> sums = row_sums(csr, values.weights);
    sums_ = torch::from_blob(sums.data(), {static_cast<std::int64_t>(sums.size())}, torch::kFloat64)
                .to(device_);
  }

  const torch::Device device_;
  const SampledTensors graph_;
  OptionalTensor sums_;
  const std::shared_ptr<BufferPool> pool_;
  std::unique_ptr<const GpuNeighbourSampler> sampler_;
};

}  // namespace

std::unique_ptr<NeighbourSampling> make_gpu_sampling(SampledTensors graph,
                                                     SampleSettings settings) {
  require<UsageError>(
      built_with_cuda(),
      "this build has no GPU engine; build it where nvcc is found, or sample on the "
      "CPU");
  const OnGpuOf gpu(graph.rowptr.device());
  use_gpu(graph.rowptr.device().index());
  torch_device(true);  // so that libtorch gives back cached memory
  const ThreadCount threads(thread_share());
  return std::make_unique<GpuSampling>(std::move(graph), std::move(settings));
}

}  // namespace plait
