#include "plait/partition/quality.h"

#include <algorithm>

#include "plait/base/parallel.h"

namespace plait {
namespace {

template <class Get>
double imbalance(const std::vector<PartQuality>& parts, Get get) {
  std::uint64_t most = 0, sum = 0;
  for (const auto& part : parts) {
    most = std::max(most, get(part));
    sum += get(part);
  }
  if (sum == 0) return 1;
  return static_cast<double>(most) * static_cast<double>(parts.size()) / static_cast<double>(sum);
}

template <VertexId V>
PartQuality measure_part(const Csr<V>& graph, const Partition& partition, int part) {
  PartQuality quality{.vertices = partition.size(part)};
  std::vector<bool> seen(graph.vertices(), false);
  for (std::uint64_t row = 0; row < quality.vertices; ++row) {
    const auto neighbours = graph.row(partition.vertex(part, row));
    quality.edges += neighbours.size();
    for (const V j : neighbours) {
      if (partition.owner(j) == part) continue;
      ++quality.remote_edges;
      if (!seen[j]) ++quality.halo_rows;
      seen[j] = true;
    }
  }
  return quality;
}

}  // namespace

std::uint64_t PartitionQuality::cut() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts) sum += part.remote_edges;
  return sum;
}

std::uint64_t PartitionQuality::halo_rows() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts) sum += part.halo_rows;
  return sum;
}

double PartitionQuality::edge_imbalance() const {
  return imbalance(parts, [](const PartQuality& p) { return p.edges; });
}

double PartitionQuality::vertex_imbalance() const {
  return imbalance(parts, [](const PartQuality& p) { return p.vertices; });
}

PartitionQuality measure_partition(const AnyCsr& any, const Partition& partition) {
  PartitionQuality quality;
  quality.parts.resize(static_cast<std::size_t>(partition.parts()));
  std::visit(
      [&](const auto& graph) {
        parallel_for(quality.parts.size(), [&](std::size_t part) {
          quality.parts[part] = measure_part(graph, partition, static_cast<int>(part));
        });
      },
      any);
  return quality;
}

}  // namespace plait
