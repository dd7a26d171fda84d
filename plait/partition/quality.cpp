#include "plait/partition/quality.h"

#include <algorithm>
#include <atomic>

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
PartQuality measure_part(const Csr<V>& graph, const Partition& partition, int part,
                         std::vector<std::atomic<std::uint64_t>>& packed) {
  PartQuality quality{.vertices = partition.size(part)};
  std::vector<bool> seen(graph.vertices(), false);
  std::vector<std::uint64_t> read(packed.size());  // by owner
  for (std::uint64_t row = 0; row < quality.vertices; ++row) {
    const auto neighbours = graph.row(partition.vertex(part, row));
    quality.edges += neighbours.size();
    for (const V j : neighbours) {
      const int owner = partition.owner(j);
      if (owner == part) continue;
      ++quality.remote_edges;
      if (!seen[j]) ++read[static_cast<std::size_t>(owner)];
      seen[j] = true;
    }
  }
  for (std::size_t owner = 0; owner < read.size(); ++owner) {
    if (read[owner] == 0) continue;
    quality.halo_rows += read[owner];
    const std::uint64_t size = partition.size(static_cast<int>(owner));
    if (reads_most(read[owner], size)) {
      quality.dense_rows += size;
    } else {
      quality.dense_rows += read[owner], quality.listed_rows += read[owner];
      packed[owner] += read[owner];
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
  std::vector<std::atomic<std::uint64_t>> packed(quality.parts.size());
  std::visit(
      [&](const auto& graph) {
        parallel_for(quality.parts.size(), [&](std::size_t part) {
          quality.parts[part] = measure_part(graph, partition, static_cast<int>(part), packed);
        });
      },
      any);
  for (std::size_t part = 0; part < packed.size(); ++part)
    quality.parts[part].packed_rows = packed[part];
  return quality;
}

}  // namespace plait
