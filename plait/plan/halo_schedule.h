// Decides which edges are summed when, while the halo arrives. Other operations over edges add the
// results of their passes too, so that they follow the same schedule.
//
// Rows of the halo arrive in the order of their slots, at the rate of the link. Local edges are
// summed first; then each pass sums the edges to rows that have arrived since, and adds to y. With
// few passes, much is left to sum after the last row has come; each pass costs its launch and
// another reading and writing of y. So passes either take equal parts of the halo, or each takes
// the rows that have arrived when the pass before it ends, but not less than a smallest part. The
// number of passes and the kind that end first, by the costs of machine.h, are taken.
//
// The schedule is computed from counts alone, so that every rank knows the schedules of all, and
// the order of sums does not depend on a measurement.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "plait/machine/machine.h"

namespace plait {

// The work of one rank in one aggregation, or another operation over edges.
struct RankLoad {
  std::uint64_t own = 0;          // rows
  std::uint64_t halo = 0;         // rows that arrive
  std::uint64_t local_edges = 0;  // among own rows
  std::uint64_t remote_edges = 0;
};

// Kinds of operations over edges, by their costs. An edge of a sum reads a row as wide as y; an
// edge of the others reads a row as it crosses the link.
enum class EdgeWork { sum, attention, extremum };

// The bytes of one row in one kind of work.
struct PassWidths {
  std::uint64_t y_bytes;     // of y, or of all results of another operation
  std::uint64_t wire_bytes;  // as it crosses the link
  EdgeWork work = EdgeWork::sum;

  friend auto operator<=>(const PassWidths&, const PassWidths&) = default;
};

// Returns the rows of the halo at which each pass ends, ascending; the last is load.halo. A cut
// that is close to the end of a block is moved there, so that no sliver of a block is sent by
// itself (`block_ends`: the rows of the halo at which the rows of one owner end). Returns nothing
// if no rows arrive, or a single pass over all edges after the last row has come is best.
std::vector<std::uint64_t> halo_cuts(const RankLoad& load, const PassWidths& width,
                                     const std::vector<std::uint64_t>& block_ends = {},
                                     const PassCosts& costs = machine().passes);

// Returns cuts at these shares (0 to 1, ascending) of `halo` rows. The last cut is `halo`, however
// the shares end; none if `halo` is 0.
std::vector<std::uint64_t> cuts_at(const std::vector<double>& shares, std::uint64_t halo);

// Returns when the last pass ends, in seconds after the step's beginning. Without cuts: when a
// single pass over all edges ends.
double predict_passes(const RankLoad& load, const PassWidths& width,
                      const std::vector<std::uint64_t>& cuts,
                      const PassCosts& costs = machine().passes);

// Returns the seconds of one pass over all edges, after all rows have arrived.
double predict_whole_pass(const RankLoad& load, const PassWidths& width,
                          const PassCosts& costs = machine().passes);

// A part of one block of the halo that arrives, and is waited for, as one.
struct HaloChunk {
  std::uint64_t first, rows;  // within the block
  std::size_t pass;           // the number of the cut that ends the pass which waits for it
};

// Returns how `cuts` cut the block of `rows` rows that begins at row `begin` of the halo.
std::vector<HaloChunk> block_chunks(std::uint64_t begin, std::uint64_t rows,
                                    const std::vector<std::uint64_t>& cuts);

}  // namespace plait
