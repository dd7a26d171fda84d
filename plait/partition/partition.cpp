#include "plait/partition/partition.h"

#include <algorithm>
#include <array>

#include "plait/base/error.h"
#include "plait/base/names.h"

namespace plait {
namespace {

constexpr Names<PartitionScheme, 5> kNames{"partition scheme",
                                           {"edges", "vertices", "clusters", "hash", "metis"}};
constexpr std::array kSchemes{PartitionScheme::edges, PartitionScheme::vertices,
                              PartitionScheme::clusters, PartitionScheme::hash,
                              PartitionScheme::metis};

}  // namespace

PartitionScheme parse_partition_scheme(std::string_view name) { return kNames.parse(name); }
std::string_view to_string(PartitionScheme scheme) { return kNames.of(scheme); }
std::span<const PartitionScheme> partition_schemes() { return kSchemes; }

Partition Partition::contiguous(std::vector<std::uint64_t> starts) {
  Partition p;
  p.parts_ = static_cast<int>(starts.size()) - 1;
  p.vertices_ = starts.back();
  p.starts_ = std::move(starts);
  return p;
}

Partition Partition::of_owners(int parts, Buffer<std::uint32_t> owner) {
  Partition p;
  p.parts_ = parts;
  p.vertices_ = owner.size();
  p.starts_.assign(static_cast<std::size_t>(parts) + 1, 0);
  p.row_ = Buffer<std::uint32_t>(owner.size());
  p.members_ = Buffer<std::uint64_t>(owner.size());
  std::vector<std::uint64_t> count(static_cast<std::size_t>(parts), 0);
  for (std::uint64_t v = 0; v < owner.size(); ++v)
    p.row_[v] = static_cast<std::uint32_t>(count[owner[v]]++);
  for (std::size_t part = 0; part < count.size(); ++part)
    p.starts_[part + 1] = p.starts_[part] + count[part];
  for (std::uint64_t v = 0; v < owner.size(); ++v) p.members_[p.starts_[owner[v]] + p.row_[v]] = v;
  p.owner_ = std::move(owner);
  return p;
}

std::uint64_t Partition::largest() const {
  std::uint64_t most = 0;
  for (int part = 0; part < parts_; ++part) most = std::max(most, size(part));
  return most;
}

int Partition::owner(std::uint64_t vertex) const {
  if (!is_contiguous()) return static_cast<int>(owner_[vertex]);
  // Empty parts share a start; upper_bound passes them and finds the one that holds the vertex.
  const auto after = std::upper_bound(starts_.begin() + 1, starts_.end() - 1, vertex);
  return static_cast<int>(after - starts_.begin()) - 1;
}

std::uint32_t Partition::row(std::uint64_t vertex) const {
  if (!is_contiguous()) return row_[vertex];
  return static_cast<std::uint32_t>(vertex - starts_[static_cast<std::size_t>(owner(vertex))]);
}

void Partition::gather_rows(const std::vector<std::vector<std::byte>>& parts, std::size_t row_bytes,
                            std::span<std::byte> all) const {
  require(
      parts.size() == static_cast<std::size_t>(parts_) && all.size() == vertices_ * row_bytes,
      "{} parts of rows, and room for {} bytes, were given for {} parts with {} rows of {} bytes",
      parts.size(), all.size(), parts_, vertices_, row_bytes);
  for (int part = 0; part < parts_; ++part) {
    const std::size_t given = parts[static_cast<std::size_t>(part)].size();
    require(given == size(part) * row_bytes,
            "rank {} gives {} bytes for its {} rows, which are of {} bytes each", part, given,
            size(part), row_bytes);
  }
  for (int part = 0; part < parts_; ++part)
    for (std::uint64_t r = 0; r < size(part); ++r)
      std::copy_n(parts[static_cast<std::size_t>(part)].data() + r * row_bytes, row_bytes,
                  all.data() + number(part, r) * row_bytes);
}

Partition make_partition(PartitionScheme scheme, const AnyCsr& graph, int parts,
                         std::uint64_t seed) {
  require<UsageError>(parts >= 1, "{} parts were asked for; use at least 1", parts);
  switch (scheme) {
    case PartitionScheme::edges:
      return partition_by_edges(graph, parts);
    case PartitionScheme::vertices:
      return partition_by_vertices(vertex_count(graph), parts);
    case PartitionScheme::clusters:
      return partition_by_clusters(graph, parts);
    case PartitionScheme::hash:
      return partition_by_hash(vertex_count(graph), parts);
    case PartitionScheme::metis:
      return partition_by_metis(graph, parts, seed);
  }
  throw UsageError("unknown partition scheme");
}

Partition make_partition(PartitionScheme scheme, const Dataset& dataset, int parts,
                         std::uint64_t seed) {
  Partition partition = scheme == PartitionScheme::hash && parts >= 1
                            ? partition_by_hash(dataset.vertices(), parts, dataset.numbers)
                            : make_partition(scheme, dataset.graph, parts, seed);
  partition.set_numbers(dataset.numbers);
  return partition;
}

}  // namespace plait
