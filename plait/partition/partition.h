// Who owns which vertex.
//
// A partition gives every vertex one owner and a row in the owner's memory. A rank's own vertices
// are in ascending order of global id, so the row of a vertex does not depend on how the partition
// was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plait/base/array.h"
#include "plait/graph/csr.h"

namespace plait {

enum class PartitionScheme { edges, vertices, clusters, hash, metis };

// Throws UsageError that lists the schemes.
PartitionScheme parse_partition_scheme(std::string_view name);
std::string_view to_string(PartitionScheme scheme);
std::span<const PartitionScheme> partition_schemes();

class Partition {
 public:
  // Part p owns the vertices starts[p] .. starts[p + 1] - 1; starts has parts + 1 entries.
  static Partition contiguous(std::vector<std::uint64_t> starts);
  // owner[v] is the part that owns v.
  static Partition of_owners(int parts, Buffer<std::uint32_t> owner);

  int parts() const { return parts_; }
  std::uint64_t vertices() const { return vertices_; }
  std::uint64_t size(int part) const;  // own vertices
  std::uint64_t largest() const;       // the most own vertices of any part

  int owner(std::uint64_t vertex) const;
  std::uint32_t row(std::uint64_t vertex) const;            // on its owner
  std::uint64_t vertex(int part, std::uint64_t row) const;  // the inverse of both

  // Puts rows that ranks gave, each by its own order, into the order of vertices: rows of
  // `row_bytes`; parts[p] holds size(p) of them, `all` has room for all.
  void gather_rows(const std::vector<std::vector<std::byte>>& parts, std::size_t row_bytes,
                   std::span<std::byte> all) const;

  bool is_contiguous() const { return owner_.empty(); }
  // One a vertex; what another rank needs to rebuild this partition with of_owners().
  std::span<const std::uint32_t> owners() const { return owner_.span(); }

 private:
  int parts_ = 0;
  std::uint64_t vertices_ = 0;
  std::vector<std::uint64_t> starts_;  // contiguous: parts + 1 bounds. Else: bounds in members_
  Buffer<std::uint32_t> owner_;        // not contiguous: one a vertex
  Buffer<std::uint32_t> row_;          // not contiguous: one a vertex
  Buffer<std::uint64_t> members_;      // not contiguous: vertices by part, ascending
};

// Edge-balanced contiguous ranges by range-constrained binary search on the offsets (MGG,
// section 4.1, algorithm 1).
Partition partition_by_edges(const AnyCsr& graph, int parts);
// Contiguous ranges of equally many vertices.
Partition partition_by_vertices(std::uint64_t vertices, int parts);
// Ranges of equally many edges of the vertices in the order of the clusters that label propagation
// finds (reorder/clusters.h), so that few edges are cut where there are communities. Throws Error
// if the graph has 2^32 - 1 vertices or more.
Partition partition_by_clusters(const AnyCsr& graph, int parts);
// Owners by a hash of the id: balanced without looking at the graph, and cuts almost every edge.
Partition partition_by_hash(std::uint64_t vertices, int parts);
// The fewest cut edges with balanced edges, by METIS's multilevel k-way scheme. Takes memory for a
// symmetric copy of the graph. Throws Error if the graph has more than 2^31 vertices or edges.
Partition partition_by_metis(const AnyCsr& graph, int parts, std::uint64_t seed);

// Throws UsageError unless 1 <= parts. Parts may be empty when there are fewer vertices.
Partition make_partition(PartitionScheme scheme, const AnyCsr& graph, int parts,
                         std::uint64_t seed = 0);

}  // namespace plait
