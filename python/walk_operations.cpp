// Random walks as Python sees them: torch.classes.plait.RandomWalks. Walks are made where their
// starts are. Calls take no lock, but for the first walk on a GPU, which copies the graph there.
#include <algorithm>
#include <map>
#include <mutex>

#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/base/process_owned.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/sample/cuda/walks.h"
#include "plait/sample/walks.h"
#include "plait/world/launch.h"
#include "python/operations.h"
#include "python/sample_tensors.h"

namespace plait {
namespace {

using torch::Tensor;

// The walks on copies of one graph, on any number of GPUs.
class WalksOnGpus {
 public:
  explicit WalksOnGpus(const RandomWalks& walks) : walks_(walks) {}

  // `starts` and the result are on one GPU; the walks are enqueued on its current stream.
  Tensor walk(const WalkSettings& settings, const Tensor& starts, std::uint64_t key) {
    const OnGpuOf gpu(starts.device());
    check(settings, starts);
    const GpuRandomWalks& there = walks_on(starts.device());
    const Tensor found = torch::empty(
        {starts.numel(), static_cast<std::int64_t>(settings.length) + 1}, starts.options());
    there.enqueue(settings, ids_in(starts).data(), ids_in(starts).size(), key,
                  reinterpret_cast<std::uint64_t*>(found.mutable_data_ptr<std::int64_t>()),
                  current_stream(starts.device()));
    return found;
  }

 private:
  // Only starts that are wrong are copied to the host, which finds their place.
  void check(const WalkSettings& settings, const Tensor& starts) const {
    const std::uint64_t vertices = vertex_count(walks_.graph());
    check_walks(settings, vertices, {});
    if (starts.numel() == 0) return;
    const auto [least, most] = at::aminmax(starts);
    const Tensor bounds = at::stack({least, most}).cpu();
    const auto ends = ids_in(bounds);
    if (std::max(ends[0], ends[1]) >= vertices)
      check_walks(settings, vertices, ids_in(starts.cpu()));
  }

  struct Placed {
    explicit Placed(const RandomWalks& of) : graph(of.graph()), walks(graph.csr(), of) {}
    GpuGraph graph;
    GpuRandomWalks walks;
  };

  const GpuRandomWalks& walks_on(const torch::Device& device) {
    const std::lock_guard lock(mutex_);
    ProcessOwned<Placed>& placed = by_gpu_[device.index()];
    if (!placed) {
      use_gpu(device.index());
      torch_device(true);  // so that libtorch gives back cached memory
      placed = process_owned(std::make_unique<Placed>(walks_));
    }
    return placed->walks;
  }

  const RandomWalks& walks_;
  std::mutex mutex_;
  std::map<c10::DeviceIndex, ProcessOwned<Placed>> by_gpu_;
};

class WalksHandle : public torch::CustomClassHolder {
 public:
  explicit WalksHandle(RandomWalks walks) : walks_(std::move(walks)), on_gpus_(walks_) {}

  // `first`: the number of the first walk.
  Tensor walk(const Tensor& starts, std::int64_t length, double p, double q, double restart,
              std::int64_t key, std::int64_t first) {
    const torch::Device device = starts.is_cuda() ? starts.device() : torch::Device(torch::kCPU);
    const Tensor from = checked_array(starts, "start", torch::kInt64, device);
    const WalkSettings settings{checked_count(length, "walk_length"), p, q, restart,
                                checked_count(first, "first")};
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      if (device.is_cuda()) return on_gpus_.walk(settings, from, static_cast<std::uint64_t>(key));
      const std::shared_ptr found = std::make_shared<RawVector<std::uint64_t>>(
          walks_.walk(settings, ids_in(from), static_cast<std::uint64_t>(key)));
      const auto keep = [found](void*) {};
      return torch::from_blob(found->data(), {from.numel(), length + 1}, keep, torch::kInt64);
    });
  }

  // Returns offsets, vertices and visits.
  std::tuple<Tensor, Tensor, Tensor> most_visited(const Tensor& starts, std::int64_t length,
                                                  std::int64_t walks, std::int64_t count,
                                                  double restart, std::int64_t key) const {
    const Tensor from = checked_array(starts, "start", torch::kInt64);
    const std::uint64_t steps = checked_count(length, "walk_length");
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const VisitedVertices most = walks_.most_visited(
          {.length = steps, .restart = restart}, checked_count(walks, "num_walks"),
          checked_count(count, "num_neighbors"), ids_in(from), static_cast<std::uint64_t>(key));
      return std::tuple(tensor_of<EdgeOffset>(most.offsets),
                        tensor_of<std::uint64_t>(most.vertices),
                        tensor_of<std::uint32_t>(most.visits));
    });
  }

 private:
  const RandomWalks walks_;
  WalksOnGpus on_gpus_;  // which refers to walks_
};

c10::intrusive_ptr<WalksHandle> make_walks(const Tensor& edge_index, std::int64_t num_nodes,
                                           const OptionalTensor& edge_weight) {
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    const AnyCsr rows = rows_by_source({edge_index, num_nodes, edge_weight});
    const auto weights = std::visit([](const auto& csr) { return csr.weights.span(); }, rows);
    return c10::make_intrusive<WalksHandle>(RandomWalks(rows, weights));
  });
}

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.class_<WalksHandle>("RandomWalks")
      .def(torch::init(&make_walks))
      .def("walk", &WalksHandle::walk)
      .def("most_visited", &WalksHandle::most_visited);
}

}  // namespace
}  // namespace plait
