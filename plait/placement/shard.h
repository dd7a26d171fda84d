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

struct Halo {
  std::vector<std::uint64_t> starts;  // parts + 1: halo rows of owner p are starts[p]..starts[p+1]
  Array<std::uint32_t> owner;         // a rank a halo row
  Array<std::uint32_t> row;           // the row on that rank

  std::uint64_t rows() const { return row.size(); }
  std::uint64_t rows_of(int part) const {
    return starts[static_cast<std::size_t>(part) + 1] - starts[static_cast<std::size_t>(part)];
  }
};

// Which remote rows are brought in.
enum class HaloKind {
  distinct,  // those that an edge reads
  complete,  // all rows of all other ranks: the whole graph's features on every rank
  dense,     // those that an edge reads; all rows of a rank of which most are read. On GPUs, where
             // a whole block needs no packing
};

struct Shard {
  int rank = 0;
  int parts = 1;
  std::uint64_t own = 0;      // rows
  Array<EdgeOffset> offsets;  // own + 1
  Array<EdgeOffset> split;    // own
  Array<Slot> slots;          // one an edge
  Array<float> weights;       // one an edge, or empty
  Halo halo;
  std::vector<std::uint64_t> vertices;  // global id of each slot, or empty

  EdgeOffset edges() const { return slots.size(); }
  EdgeOffset remote_edges() const;
  std::uint64_t slot_count() const { return own + halo.rows(); }

  // Where rows begin and end, as the kernels take it: all edges, or the local or remote CSR's.
  std::span<const EdgeOffset> begin() const { return offsets.span().first(own); }
  std::span<const EdgeOffset> end() const { return offsets.span().subspan(1); }
  std::span<const EdgeOffset> local_end() const { return split.span(); }
  std::span<const EdgeOffset> remote_begin() const { return split.span(); }
};

// How the edges of a row are laid out in a shard.
enum class EdgeOrder {
  local_first,  // local ones, then remote ones; either keep their order
  as_given,     // in the order of the whole graph, which no partition changes
};

// `rows` are the rank's rows with global ids (own_rows, own_columns). With EdgeOrder::as_given,
// split[i] only tells how many edges of row i are local, not where they are. Throws DoesNotFitError
// if there are 2^32 slots or more.
template <VertexId V>
Shard make_shard(const Csr<V>& rows, const Partition& partition, int rank,
                 HaloKind kind = HaloKind::distinct, EdgeOrder order = EdgeOrder::local_first);

// The global id of each slot.
std::vector<std::uint64_t> vertices_of_slots(const Shard& shard, const Partition& partition);

}  // namespace plait
