// A graph file whose features stay where they are, mapped, and are gathered by id:
// torch.classes.plait.GraphFile.
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/graph/renumber.h"
#include "plait/io/io.h"
#include "plait/table/sharded/table.h"
#include "plait/world/launch.h"
#include "python/dataset_tensors.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;

constexpr std::size_t kSparseGrain = 256;                     // rows
constexpr std::uint64_t kManyBytes = std::uint64_t{1} << 28;  // whose room is looked for

// Rows of features by the vertices' first numbers (renumber.h). Several threads may gather at once.
class FeatureRows {
 public:
  explicit FeatureRows(const Dataset& dataset)
      : features_(dataset.features), vertices_(vertices_by_number(dataset)) {
    if (!features_.empty() && !features_.is_sparse()) table_ = Table::map(features_);
  }

  std::int64_t width() const { return static_cast<std::int64_t>(features_.width); }

  // Writes the rows of these ids in fp32, one after the other. Ids are not checked.
  void gather(std::span<const std::int64_t> ids, float* out) const {
    std::vector<std::uint64_t> at(ids.begin(), ids.end());
    if (!vertices_.empty())
      for (std::uint64_t& id : at) id = vertices_[id];
    if (table_) return table_->gather(at.data(), at.size(), out, features_.width);
    const TableSource source = rows_of(features_);
    parallel_blocks(at.size(), kSparseGrain, [&](std::size_t begin, std::size_t end) {
      source(std::span(at).subspan(begin, end - begin),
             reinterpret_cast<std::byte*>(out + begin * features_.width));
    });
  }

 private:
  Features features_;
  Buffer<std::uint64_t> vertices_;  // of each number; empty: the same
  std::unique_ptr<Table> table_;    // of dense features
};

// Returns the dataset without features, as it was before it was renumbered.
Dataset structure_of(Dataset dataset) {
  dataset.features = {};
  return with_first_numbers(dataset);
}

class GraphFile : public torch::CustomClassHolder {
 public:
  GraphFile(const Dataset& dataset, std::vector<std::string> warnings)
      : structure_(structure_of(dataset)), features_(dataset), warnings_(std::move(warnings)) {}

  // Warnings about the file, which are Python's to show.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Returns the numbers of nodes, edges and features per node.
  std::tuple<std::int64_t, std::int64_t, std::int64_t> sizes() const {
    return {static_cast<std::int64_t>(structure_.vertices()),
            static_cast<std::int64_t>(structure_.edges()), features_.width()};
  }

  std::tuple<Tensor, Tensor> edges() const {
    return with_python_errors([&] {
      auto [row, colptr] = edges_by_target(structure_.graph);
      return std::tuple{row, colptr};
    });
  }

  c10::Dict<std::string, Tensor> small_tensors() const {
    return with_python_errors([&] { return small_tensors_of(structure_); });
  }

  // `given` holds ids that were checked.
  Tensor gather(const Tensor& given) const {
    const Tensor ids = given.to(torch::kCPU, torch::kLong).contiguous();
    const auto bytes = sizeof(float) * static_cast<std::uint64_t>(ids.numel() * features_.width());
    if (bytes > kManyBytes) with_python_errors([&] { require_memory(bytes, "rows of x"); });
    Tensor out = torch::empty({ids.numel(), features_.width()}, torch::kFloat);
    const ThreadCount threads(thread_share());
    features_.gather({ids.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(ids.numel())},
                     out.mutable_data_ptr<float>());
    return out;
  }

 private:
  Dataset structure_;
  FeatureRows features_;
  std::vector<std::string> warnings_;
};

c10::intrusive_ptr<GraphFile> open_file(const std::string& path, std::int64_t vertices,
                                        bool directed, const std::string& first_line) {
  check_path(path);
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    std::vector<std::string> warnings;
    const Dataset dataset =
        read_dataset(path, reading_options(vertices, directed, first_line, warnings));
    require<UsageError>(!dataset.is_set_of_graphs(),
                        "{} is a set of graphs, but a store holds one; use plait.Graph.load", path);
    return c10::make_intrusive<GraphFile>(dataset, std::move(warnings));
  });
}

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.class_<GraphFile>("GraphFile")
      .def(torch::init(&open_file))
      .def("warnings", [](const c10::intrusive_ptr<GraphFile>& file) { return file->warnings(); })
      .def("sizes", [](const c10::intrusive_ptr<GraphFile>& file) { return file->sizes(); })
      .def("edges", [](const c10::intrusive_ptr<GraphFile>& file) { return file->edges(); })
      .def("small_tensors",
           [](const c10::intrusive_ptr<GraphFile>& file) { return file->small_tensors(); })
      .def("gather", [](const c10::intrusive_ptr<GraphFile>& file, const Tensor& ids) {
        return file->gather(ids);
      });
}

}  // namespace
}  // namespace plait
