// Decides which rank owns which vertex.
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
#include "plait/graph/dataset.h"

namespace plait {

// The ways to partition; a function below says what each does.
enum class PartitionScheme { edges, vertices, clusters, hash, metis };

// Throws a UsageError that lists the schemes.
PartitionScheme parse_partition_scheme(std::string_view name);
std::string_view to_string(PartitionScheme scheme);
// Returns all schemes.
std::span<const PartitionScheme> partition_schemes();

// An owner for every vertex. Parts are numbered from 0; ids and rows are not checked.
class Partition {
 public:
  // Part p owns the vertices starts[p] .. starts[p + 1] - 1. `starts` has parts + 1 ascending
  // entries, from 0 to the number of vertices.
  static Partition contiguous(std::vector<std::uint64_t> starts);
  // owner[v], below `parts`, is the part that owns v.
  static Partition of_owners(int parts, Buffer<std::uint32_t> owner);

  // Sets the numbers that the vertices of a renumbered graph had before (Dataset::numbers).
  void set_numbers(Array<std::uint64_t> numbers) { numbers_ = std::move(numbers); }

  int parts() const { return parts_; }
  std::uint64_t vertices() const { return vertices_; }
  // Returns the number of own vertices of a part.
  std::uint64_t size(int part) const {
    const auto p = static_cast<std::size_t>(part);
    return starts_[p + 1] - starts_[p];
  }
  std::uint64_t largest() const;  // the most own vertices of any part

  // owner() and row() tell which part owns a vertex, and its row there; vertex() is the inverse of
  // both. Binary search in the parts if the partition is contiguous, else one access.
  int owner(std::uint64_t vertex) const;
  std::uint32_t row(std::uint64_t vertex) const;
  std::uint64_t vertex(int part, std::uint64_t row) const {
    const std::uint64_t position = starts_[static_cast<std::size_t>(part)] + row;
    return is_contiguous() ? position : members_[position];
  }
  // Returns the number that vertex(part, row) had before renumbering. Users know the vertex by this
  // number, and it keys random draws. It is the id where nothing was renumbered.
  std::uint64_t number(int part, std::uint64_t row) const {
    const std::uint64_t v = vertex(part, row);
    return numbers_.empty() ? v : numbers_[v];
  }

  // Puts rows that ranks gave, each in its own order, into the order of numbers. A row has
  // `row_bytes` bytes; parts[p] holds size(p) rows, `all` has room for all. Throws Error otherwise.
  void gather_rows(const std::vector<std::vector<std::byte>>& parts, std::size_t row_bytes,
                   std::span<std::byte> all) const;

  // Tells whether one part owns all vertices: rows are then ids, and nothing is remote.
  bool is_whole() const { return parts_ == 1; }
  // Tells whether every part owns a range of ids.
  bool is_contiguous() const { return owner_.empty(); }
  // Returns the owner of each vertex, from which another rank can rebuild this partition with
  // of_owners(); empty if contiguous.
  std::span<const std::uint32_t> owners() const { return owner_.span(); }
  // Returns the row of each vertex in its owner's memory; empty if contiguous.
  std::span<const std::uint32_t> rows() const { return row_.span(); }
  // Returns the numbers of all vertices before renumbering; empty: the same.
  const Array<std::uint64_t>& numbers() const { return numbers_; }

 private:
  int parts_ = 0;
  std::uint64_t vertices_ = 0;
  std::vector<std::uint64_t> starts_;  // contiguous: parts + 1 bounds. Else: bounds in members_
  Buffer<std::uint32_t> owner_;        // not contiguous: one per vertex
  Buffer<std::uint32_t> row_;          // not contiguous: one per vertex
  Buffer<std::uint64_t> members_;      // not contiguous: vertices by part, ascending
  Array<std::uint64_t> numbers_;       // of a renumbered graph; else empty
};

// Cuts rows into contiguous parts with about equally many edges: part p ends at the first row at
// which its share is reached. `offsets`: of the rows, and their end. Returns where parts begin, and
// the number of rows.
std::vector<std::uint64_t> even_cuts(std::span<const EdgeOffset> offsets, int parts);

// Makes contiguous ranges with about equally many edges, by range-constrained binary search on the
// offsets (MGG, section 4.1, algorithm 1).
Partition partition_by_edges(const AnyCsr& graph, int parts);
// Makes contiguous ranges of equally many vertices.
Partition partition_by_vertices(std::uint64_t vertices, int parts);
// Makes ranges of equally many edges of the vertices in the order of the clusters that label
// propagation finds (communities/clusters.h), so that few edges are cut in graphs with communities.
// Throws Error if the graph has 2^32 - 1 vertices or more.
Partition partition_by_clusters(const AnyCsr& graph, int parts);
// Chooses owners by a hash of the id or, if there are any, of the number before renumbering:
// balanced without looking at the graph, but cuts almost every edge.
Partition partition_by_hash(std::uint64_t vertices, int parts,
                            std::span<const std::uint64_t> numbers = {});
// Finds few cut edges with balanced edges, by METIS's multilevel k-way scheme. Takes memory for a
// symmetric copy of the graph (DoesNotFitError if there is too little). Of a graph of `most_edges`
// or more, METIS partitions the clusters that label propagation finds. Throws Error if the graph
// has 2^31 - 1 vertices or more, or 2^29 pairs of clusters that edges join.
Partition partition_by_metis(const AnyCsr& graph, int parts, std::uint64_t seed,
                             std::uint64_t most_edges = (std::uint64_t{1} << 30) - 1);

// Partitions by a scheme; `seed` is for metis alone. Parts may be empty when there are fewer
// vertices. Throws UsageError unless 1 <= parts, and errors as the scheme does.
Partition make_partition(PartitionScheme scheme, const AnyCsr& graph, int parts,
                         std::uint64_t seed = 0);
// Partitions the dataset's graph, and sets the numbers of its vertices.
Partition make_partition(PartitionScheme scheme, const Dataset& dataset, int parts,
                         std::uint64_t seed = 0);

}  // namespace plait
