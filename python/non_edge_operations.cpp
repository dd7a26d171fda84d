// Pairs that are no edges, as Python sees them: torch.classes.plait.NonEdges. They are drawn on the
// CPU or a GPU, the same ones. Calls take no lock, but for the first draw on a GPU, which copies
// the arrays there.
#include <map>
#include <mutex>

#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/base/process_owned.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/sample/cuda/non_edges.h"
#include "plait/sample/non_edges.h"
#include "plait/world/launch.h"
#include "python/operations.h"
#include "python/sample_tensors.h"

namespace plait {
namespace {

using torch::Tensor;

std::uint64_t* written(const Tensor& t) {
  return reinterpret_cast<std::uint64_t*>(t.mutable_data_ptr<std::int64_t>());
}

// The copies of the same pairs, on any number of GPUs.
class NonEdgesOnGpus {
 public:
  explicit NonEdgesOnGpus(const NonEdges& pairs) : pairs_(pairs) {}

  // Enqueues the draw on the GPU's current stream.
  Tensor draw(const GpuNonEdges::Draw& wanted, const torch::Device& device) {
    const OnGpuOf gpu(device);
    const GpuNonEdges& there = on(device);
    const Tensor drawn = torch::empty({2, static_cast<std::int64_t>(wanted.count)},
                                      torch::device(device).dtype(torch::kInt64));
    there.draw(wanted, written(drawn), written(drawn) + wanted.count, current_stream(device));
    return drawn;
  }
  Tensor draw_columns(const Tensor& rows, std::uint64_t key) {
    const OnGpuOf gpu(rows.device());
    const GpuNonEdges& there = on(rows.device());
    const Tensor columns = torch::empty_like(rows);
    there.draw_columns(ids_in(rows).data(), ids_in(rows).size(), key, written(columns),
                       current_stream(rows.device()));
    return columns;
  }

 private:
  const GpuNonEdges& on(const torch::Device& device) {
    const std::lock_guard lock(mutex_);
    ProcessOwned<GpuNonEdges>& placed = by_gpu_[device.index()];
    if (!placed) {
      use_gpu(device.index());
      torch_device(true);  // so that libtorch gives back cached memory
      placed = process_owned(std::make_unique<GpuNonEdges>(pairs_));
    }
    return *placed;
  }

  const NonEdges& pairs_;
  std::mutex mutex_;
  std::map<c10::DeviceIndex, ProcessOwned<GpuNonEdges>> by_gpu_;
};

class NonEdgesHandle : public torch::CustomClassHolder {
 public:
  explicit NonEdgesHandle(NonEdges pairs) : pairs_(std::move(pairs)), on_gpus_(pairs_) {}

  // Throws if Python's len() cannot tell it.
  std::int64_t count() const {
    return with_python_errors([&] {
      require<UsageError>(pairs_.count() < std::uint64_t{1} << 63,
                          "there are {} pairs without edges, more than 2^63 - 1", pairs_.count());
      return static_cast<std::int64_t>(pairs_.count());
    });
  }

  // `device`: where the pairs are drawn, and come to.
  Tensor draw(std::int64_t wanted, bool replace, std::int64_t key, c10::Device device) {
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const std::uint64_t most = checked_count(wanted, "the number of pairs");
      const auto number = static_cast<std::uint64_t>(key);
      if (device.is_cuda())
        return on_gpus_.draw({pairs_.drawn(most, replace), replace, number}, device);
      const auto drawn = pairs_.draw(most, replace, number);
      const auto size = static_cast<std::int64_t>(drawn.size());
      const Tensor pairs = raw_tensor(2 * drawn.size()).view({2, size});
      std::int64_t* const to = pairs.mutable_data_ptr<std::int64_t>();
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        to[i] = static_cast<std::int64_t>(drawn[i].row);
        to[drawn.size() + i] = static_cast<std::int64_t>(drawn[i].column);
      }
      return pairs;
    });
  }

  // Neighbours are drawn where the rows are.
  Tensor draw_columns(const Tensor& rows, std::int64_t key) {
    const torch::Device device = rows.is_cuda() ? rows.device() : torch::Device(torch::kCPU);
    const Tensor from = checked_array(rows, "source", torch::kInt64, device);
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const auto number = static_cast<std::uint64_t>(key);
      if (device.is_cuda()) return on_gpus_.draw_columns(from, number);
      return tensor_of<std::uint64_t>(pairs_.draw_columns(ids_in(from), number));
    });
  }

 private:
  const NonEdges pairs_;
  NonEdgesOnGpus on_gpus_;  // which refers to pairs_
};

// `kind`: a PairKind.
c10::intrusive_ptr<NonEdgesHandle> make_non_edges(const Tensor& edge_index, std::int64_t sources,
                                                  std::int64_t targets, std::int64_t kind) {
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    const std::uint64_t rows = checked_count(sources, "num_nodes");
    const std::uint64_t columns = checked_count(targets, "num_nodes");
    const AnyCsr graph = rows_by_source({edge_index, std::max(sources, targets), std::nullopt});
    return c10::make_intrusive<NonEdgesHandle>(
        NonEdges(graph, rows, columns, static_cast<PairKind>(kind)));
  });
}

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.class_<NonEdgesHandle>("NonEdges")
      .def(torch::init(&make_non_edges))
      .def("count", &NonEdgesHandle::count)
      .def("draw", &NonEdgesHandle::draw)
      .def("draw_columns", &NonEdgesHandle::draw_columns);
}

}  // namespace
}  // namespace plait
