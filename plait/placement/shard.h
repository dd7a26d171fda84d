// One rank's part of the graph, ready to compute with: its rows as a local and a remote CSR over
// slots (MGG section 3.1), and the halo: the distinct remote rows that they read.
//
// Slots: own vertices first, in the order of their rows (0 .. own - 1), the halo after, grouped by
// owner and ascending by row within an owner. Every edge of the graph is in exactly one shard.
//
// Encoding: both CSRs share their arrays. The edges of row i are offsets[i] .. offsets[i + 1], the
// local ones first: they end, and the remote ones begin, at split[i].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/partition/partition.h"

namespace plait {

// The remote rows of a shard, in the order of their slots.
struct Halo {
  std::vector<std::uint64_t> starts;  // parts + 1: halo rows of owner p are starts[p]..starts[p+1]
  Array<std::uint32_t> owner;         // the rank of each halo row
  Array<std::uint32_t> row;           // the row on that rank

  // The number of halo rows, and of halo rows of one owner.
  std::uint64_t rows() const { return row.size(); }
  std::uint64_t rows_of(int part) const {
    return starts[static_cast<std::size_t>(part) + 1] - starts[static_cast<std::size_t>(part)];
  }
};

// Decides which remote rows are brought in.
enum class HaloKind {
  distinct,  // rows that an edge reads
  complete,  // all rows of all other ranks: the whole graph's features on every rank
  // Rows that an edge reads, or all rows of a rank if most are read. This kind is for GPUs, where a
  // whole block needs no packing.
  dense,
};

// One rank's part of the graph. It keeps its arrays alive; they may be the graph's own.
struct Shard {
  int rank = 0;
  int parts = 1;
  std::uint64_t own = 0;      // rows
  Array<EdgeOffset> offsets;  // own + 1
  Array<EdgeOffset> split;    // own
  Array<Slot> slots;          // one per edge
  Array<float> weights;       // one per edge, or empty
  Halo halo;
  std::vector<std::uint64_t> vertices;  // number of each slot's vertex, or empty

  // Numbers of edges of own rows, of edges to halo rows, and of slots.
  EdgeOffset edges() const { return slots.size(); }
  // Counts the edges whose slots are of the halo.
  EdgeOffset remote_edges() const;
  std::uint64_t slot_count() const { return own + halo.rows(); }

  // Begins and ends of rows, as the kernels take them: of all edges, or of the local or remote CSR.
  std::span<const EdgeOffset> begin() const { return offsets.span().first(own); }
  std::span<const EdgeOffset> end() const { return offsets.span().subspan(1); }
  std::span<const EdgeOffset> local_end() const { return split.span(); }
  std::span<const EdgeOffset> remote_begin() const { return split.span(); }
};

// The order in which a shard keeps the edges of a row.
enum class EdgeOrder {
  local_first,  // local edges, then remote ones; either keep their order
  as_given,     // in the order of the whole graph, which no partition changes
};

// Places a rank's rows, which have global ids (own_rows, own_columns). With EdgeOrder::as_given,
// split[i] only tells how many edges of row i are local, not where they are. Throws DoesNotFitError
// if there are 2^32 - 1 slots or more. A rank that owns all vertices shares arrays with `rows`.
template <VertexId V>
Shard make_shard(const Csr<V>& rows, const Partition& partition, int rank,
                 HaloKind kind = HaloKind::distinct, EdgeOrder order = EdgeOrder::local_first);

// Returns the number of each slot's vertex: its global id, or from before renumbering.
std::vector<std::uint64_t> vertices_of_slots(const Shard& shard, const Partition& partition);

}  // namespace plait
