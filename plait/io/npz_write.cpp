// Writing a dataset as a graph archive.
#include <algorithm>
#include <memory>
#include <utility>

#include "plait/io/edges_of_csr.h"
#include "plait/io/npy.h"
#include "plait/io/npz.h"
#include "plait/io/zip_archive.h"

namespace plait {
namespace {

using Shape = std::vector<std::uint64_t>;

template <class T>
void add(ZipWriter& zip, const std::string& key, const Shape& shape, Array<T> values,
         NpyType type = npy_type<T>()) {
  const auto owner = std::make_shared<const Array<T>>(std::move(values));
  zip.add(key + ".npy", npy_header(type, shape), std::as_bytes(owner->span()), owner);
}

// Ids below `bound` are written signed, as is usual, wherever the same bits mean the same number.
template <VertexId V>
NpyType id_type(std::uint64_t bound) {
  constexpr std::uint64_t kSigned32 = std::uint64_t{1} << 31;
  return {sizeof(V) == 8 || bound <= kSigned32 ? 'i' : 'u', sizeof(V)};
}

template <VertexId V>
void add_edges(ZipWriter& zip, const Csr<V>& graph) {
  Buffer<V> index(2 * graph.edges());  // a row of sources, then a row of targets
  std::copy(graph.neighbours.begin(), graph.neighbours.end(), index.begin());
  fill_rows(graph, index.data() + graph.edges());
  add(zip, "edge_index", {2, graph.edges()}, Array<V>(std::move(index)),
      id_type<V>(graph.vertices()));
  if (graph.weighted()) add(zip, "edge_weight", {graph.edges()}, graph.weights);
}

void add_features(ZipWriter& zip, const Features& features) {
  const Shape shape{features.rows, features.width};
  if (features.empty()) return;
  if (features.is_sparse()) {
    const Csr32& sparse = features.sparse;
    add(zip, "x_shape", {2}, Array<std::uint64_t>(shape), npy_type<std::int64_t>());
    add(zip, "x_indptr", {features.rows + 1}, sparse.offsets, npy_type<std::int64_t>());
    add(zip, "x_indices", {sparse.edges()}, sparse.neighbours,
        id_type<std::uint32_t>(features.width));
    add(zip, "x_data", {sparse.edges()}, sparse.weights);
  } else if (!features.bf16.empty()) {
    Buffer<float> singles(features.bf16.size());
    std::transform(features.bf16.begin(), features.bf16.end(), singles.begin(), to_float);
    add(zip, "x", shape, Array<float>(std::move(singles)));
  } else {
    add(zip, "x", shape, features.f32);
  }
}

// Writes one split as three lists of vertices, several splits as masks.
void add_splits(ZipWriter& zip, const Dataset& dataset) {
  for (const auto& [key, split] : kNpzSplits) {
    const auto chosen = [part = split](Split entry) { return entry == part; };
    const std::span<const Split> entries = dataset.splits;
    if (dataset.split_count == 1) {
      std::vector<std::int64_t> ids;
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (chosen(entries[i])) ids.push_back(static_cast<std::int64_t>(i));
      const Shape shape{ids.size()};
      add(zip, key, shape, Array<std::int64_t>(std::move(ids)));
    } else if (dataset.split_count > 1) {
      Buffer<std::uint8_t> mask(entries.size());
      std::transform(entries.begin(), entries.end(), mask.begin(), chosen);
      add(zip, fmt::format("{}_masks", key), {dataset.split_count, dataset.examples()},
          Array<std::uint8_t>(std::move(mask)), NpyType{'b', 1});
    }
  }
}

// Tells whether a reader can find the number of vertices from arrays that are written anyway.
bool tells_vertices(const Dataset& dataset) {
  if (!dataset.features.empty() || !dataset.labels.empty() || !dataset.label_sets.empty() ||
      dataset.is_set_of_graphs() || !dataset.original_ids.empty() || dataset.split_count > 1)
    return true;
  return std::visit(
      [](const auto& graph) {
        const std::uint64_t last = graph.vertices() - 1;
        return graph.degree(last) > 0 || std::find(graph.neighbours.begin(), graph.neighbours.end(),
                                                   last) != graph.neighbours.end();
      },
      dataset.graph);
}

}  // namespace

void write_npz(const Dataset& dataset, AtomicFile& file, bool compress) {
  require(dataset.vertices() > 0, "a graph without vertices cannot be written");
  ZipWriter zip(compress);
  std::visit([&](const auto& graph) { add_edges(zip, graph); }, dataset.graph);
  add_features(zip, dataset.features);
  Array<std::int32_t> labels = dataset.labels;
  // Labels that are all unknown still say how many vertices there are.
  if (!tells_vertices(dataset)) labels = Buffer<std::int32_t>(dataset.vertices(), -1);
  if (!labels.empty()) {
    const Shape shape{labels.size()};
    add(zip, "y", shape, std::move(labels));
  }
  if (!dataset.label_sets.empty())
    add(zip, dataset.classes == 1 ? "label_sets" : "y",
        {dataset.vertices(), static_cast<std::uint64_t>(dataset.classes)}, dataset.label_sets);
  if (dataset.is_set_of_graphs()) add(zip, "graph_id", {dataset.vertices()}, dataset.graph_ids);
  add_splits(zip, dataset);
  if (!dataset.original_ids.empty())
    add(zip, "original_ids", {dataset.vertices()}, dataset.original_ids);
  zip.write(file);
}

}  // namespace plait
