#include "plait/io/container_sections.h"

#include <variant>

namespace plait::container {

std::vector<Content> contents_of(const Dataset& dataset) {
  std::vector<Content> contents;
  const auto add = [&]<class T>(Kind kind, const Array<T>& array) {
    contents.push_back({kind, element_of<T>(), std::as_bytes(array.span())});
  };
  const auto add_if_any = [&](Kind kind, const auto& array) {
    if (!array.empty()) add(kind, array);
  };
  std::visit(
      [&](const auto& graph) {
        add(Kind::offsets, graph.offsets);
        add(Kind::neighbours, graph.neighbours);
        add_if_any(Kind::weights, graph.weights);
      },
      dataset.graph);
  const Features& features = dataset.features;
  if (features.is_sparse()) {
    add(Kind::feature_offsets, features.sparse.offsets);
    add(Kind::feature_columns, features.sparse.neighbours);
    add(Kind::feature_values, features.sparse.weights);
  } else if (!features.bf16.empty()) {
    add(Kind::features, features.bf16);
  } else if (!features.empty()) {
    add(Kind::features, features.f32);
  }
  add_if_any(Kind::labels, dataset.labels);
  add_if_any(Kind::splits, dataset.splits);
  add_if_any(Kind::original_ids, dataset.original_ids);
  add_if_any(Kind::label_sets, dataset.label_sets);
  add_if_any(Kind::graph_ids, dataset.graph_ids);
  add_if_any(Kind::numbers, dataset.numbers);
  return contents;
}

}  // namespace plait::container
