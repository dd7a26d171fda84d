// The cost of a partition: work per rank, and bytes between ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/base/row_stride.h"
#include "plait/partition/partition.h"

namespace plait {

// The halo of a part if sums come instead of rows wherever they are fewer (sums_are_fewer).
struct SummedHalo {
  std::uint64_t rows = 0;         // rows and sums that are brought
  std::uint64_t listed_rows = 0;  // of these, rows of parts that are neither summed nor whole
  std::uint64_t packed_rows = 0;  // own rows that other parts list, counted for each
  // edges of own rows, without edges that others sum, plus one per sum
  std::uint64_t kept_edges = 0;
  std::uint64_t sums = 0;          // sums that it makes for other parts
  std::uint64_t summed_edges = 0;  // edges in these sums

  friend bool operator==(const SummedHalo&, const SummedHalo&) = default;
};

// The figures of one part.
struct PartQuality {
  std::uint64_t vertices = 0;      // own rows
  std::uint64_t edges = 0;         // edges of own rows
  std::uint64_t remote_edges = 0;  // of these, edges from a vertex that another part owns
  std::uint64_t halo_rows = 0;     // distinct remote vertices among them
  // On GPUs, where a part that is mostly read is brought whole (reads_most):
  std::uint64_t dense_rows = 0;   // rows that are brought
  std::uint64_t listed_rows = 0;  // of these, rows of parts that are not brought whole
  std::uint64_t packed_rows = 0;  // own rows that other parts list, counted for each
  std::uint64_t whole_rows = 0;   // own rows once for each other part that is brought them all
  SummedHalo summed;

  // Returns the bytes that a rank fetches for one aggregation of `width` fp32 features: each halo
  // row once, padded as in slots.
  std::uint64_t bytes(std::uint64_t width) const { return halo_rows * row_bytes(width); }
};

// Tells whether all `size` rows of a part are brought if `read` of them are read (at least four
// fifths): copying the whole block costs less than packing most of it.
constexpr bool reads_most(std::uint64_t read, std::uint64_t size) {
  return read >= size - size / 5;
}

// Tells whether a part sends `sums` sums of its rows, one for each row of another part that reads
// some, instead of the `rows` rows that it would send: if they are at most half as many. Sums must
// be made before they cross, while the reader would sum rows as they arrive; if they save little,
// the step takes longer by the time that is then not hidden (docs/performance.md).
constexpr bool sums_are_fewer(std::uint64_t rows, std::uint64_t sums) {
  return rows > 0 && sums <= rows / 2;
}

// The figures of all parts.
struct PartitionQuality {
  std::vector<PartQuality> parts;

  std::uint64_t cut() const;        // remote edges of all parts
  std::uint64_t halo_rows() const;  // of all parts
  double edge_imbalance() const;    // most edges of a part over the mean; 1 is even
  double vertex_imbalance() const;  // the same of vertices
};

// Measures a partition. Looks at every edge, by all threads.
PartitionQuality measure_partition(const AnyCsr& graph, const Partition& partition);

}  // namespace plait
