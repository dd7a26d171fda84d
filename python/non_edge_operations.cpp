// Pairs that are no edges, as Python sees them: torch.classes.plait.NonEdges. Calls take no lock.
#include "plait/base/parallel.h"
#include "plait/sample/non_edges.h"
#include "plait/world/launch.h"
#include "python/operations.h"
#include "python/sample_tensors.h"

namespace plait {
namespace {

using torch::Tensor;

class NonEdgesHandle : public torch::CustomClassHolder {
 public:
  explicit NonEdgesHandle(NonEdges pairs) : pairs_(std::move(pairs)) {}

  std::int64_t count() const { return static_cast<std::int64_t>(pairs_.count()); }

  Tensor draw(std::int64_t wanted, bool replace, std::int64_t key) const {
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const auto drawn = pairs_.draw(checked_count(wanted, "the number of pairs"), replace,
                                     static_cast<std::uint64_t>(key));
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

  Tensor draw_columns(const Tensor& rows, std::int64_t key) const {
    const Tensor from = checked_array(rows, "source", torch::kInt64);
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      return tensor_of<std::uint64_t>(
          pairs_.draw_columns(ids_in(from), static_cast<std::uint64_t>(key)));
    });
  }

 private:
  NonEdges pairs_;
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
