// Random walks as Python sees them: torch.classes.plait.RandomWalks. Calls take no lock.
#include "plait/base/parallel.h"
#include "plait/sample/walks.h"
#include "plait/world/launch.h"
#include "python/operations.h"
#include "python/sample_tensors.h"

namespace plait {
namespace {

using torch::Tensor;

class WalksHandle : public torch::CustomClassHolder {
 public:
  explicit WalksHandle(RandomWalks walks) : walks_(std::move(walks)) {}

  Tensor walk(const Tensor& starts, std::int64_t length, double p, double q, double restart,
              std::int64_t key) const {
    const Tensor from = checked_array(starts, "start", torch::kInt64);
    const std::uint64_t steps = checked_count(length, "walk_length");
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const std::shared_ptr found = std::make_shared<RawVector<std::uint64_t>>(
          walks_.walk({steps, p, q, restart}, ids_in(from), static_cast<std::uint64_t>(key)));
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
  RandomWalks walks_;
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
