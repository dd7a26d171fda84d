#include "plait/graph/made_features.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "plait/base/error.h"

namespace plait {
namespace {

Features constant(const Dataset& dataset) {
  const std::uint64_t vertices = dataset.vertices();
  return {.rows = vertices, .width = 1, .f32 = Buffer<float>(vertices, 1.0f)};
}

Features degree(const Dataset& dataset) {
  Buffer<std::uint32_t> columns(dataset.vertices());
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t i = 0; i < columns.size(); ++i) {
          require<UsageError>(graph.degree(i) < kMaxVertices32, "vertex {} has {} edges: too many",
                              dataset.number(i), graph.degree(i));
          columns[i] = static_cast<std::uint32_t>(graph.degree(i));
        }
      },
      dataset.graph);
  return one_hot(std::move(columns));
}

Features identity(const Dataset& dataset) {
  const std::uint64_t vertices = dataset.vertices();
  require<UsageError>(vertices <= kMaxVertices32, "{} vertices are too many for one column each",
                      vertices);
  Buffer<std::uint32_t> columns(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v)
    columns[v] = static_cast<std::uint32_t>(dataset.number(v));
  return one_hot(std::move(columns));
}

struct Maker {
  std::string_view name;
  Features (*make)(const Dataset&);
};
constexpr std::array kMakers{Maker{"constant", constant}, Maker{"degree", degree},
                             Maker{"identity", identity}};

}  // namespace

Features one_hot(Buffer<std::uint32_t> columns) {
  const std::uint64_t rows = columns.size();
  Buffer<EdgeOffset> offsets(rows + 1);
  std::iota(offsets.begin(), offsets.end(), EdgeOffset{0});
  const std::uint64_t width =
      rows == 0 ? 0 : std::uint64_t{*std::max_element(columns.begin(), columns.end())} + 1;
  Features features{.rows = rows, .width = width};
  features.sparse = {std::move(offsets), std::move(columns), Buffer<float>(rows, 1.0f)};
  return features;
}

bool makes_features(std::string_view name) {
  return std::ranges::any_of(kMakers, [&](const Maker& maker) { return maker.name == name; });
}

Features make_features(std::string_view name, const Dataset& dataset) {
  for (const Maker& maker : kMakers)
    if (maker.name == name) return maker.make(dataset);
  throw UsageError(
      fmt::format("features '{}' are unknown; use constant, degree or identity", name));
}

}  // namespace plait
