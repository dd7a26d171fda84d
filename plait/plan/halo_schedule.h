// When to sum what, while the halo arrives.
//
// Rows of the halo arrive in the order of their slots, at the rate of the link. Own edges are
// summed first; then each pass sums the edges to rows that have arrived since, and adds to y. Few
// passes leave much to sum after the last row has come; each pass costs its launch and another
// reading and writing of y. So: passes take equal parts of the halo, or each what has arrived when
// the one before it ends, but not less than such a part; how many there are, and which of the two,
// is what ends first by the costs below.
//
// Computed from counts alone, so that every rank knows the schedules of all, and the order of sums
// does not depend on a measurement.
#pragma once

#include <cstdint>
#include <vector>

namespace plait {

// What a rank has to do in one aggregation.
struct RankLoad {
  std::uint64_t own = 0;          // rows
  std::uint64_t halo = 0;         // rows that arrive
  std::uint64_t local_edges = 0;  // among own rows
  std::uint64_t remote_edges = 0;
};

// Times in seconds, fitted to steps measured on four H200s (docs/performance.md).
struct PassCosts {
  double link = 375e9;             // bytes a second into one GPU
  double first_row = 29e-6;        // until rows begin to arrive
  double pass = 7.5e-6;            // a pass besides its work: a wait and launches
  double row = 1.13e-10;           // a row with an edge in the pass, and each slice of the width
  double edge = 1.6e-12;           // an edge, and each slice
  double edge_byte = 1 / 15.6e12;  // a byte of a row that an edge reads
  double y_byte = 1 / 8e12;        // a byte of y read or written
  double halo_byte = 1 / 1.32e12;  // a byte of the halo: each row is read a first time
  double slice = 256;              // bytes of a row that are summed at once
  double beside_link = 1.16;       // a pass takes so much longer while rows arrive
};

struct PassWidths {
  std::uint64_t y_bytes;     // a row of y
  std::uint64_t wire_bytes;  // a row on the link
};

// Rows of the halo by which each pass ends, ascending; the last is load.halo. Where they come close
// to the end of a block (`block_ends`: rows of the halo by which those of one owner end) they are
// moved there, so that no sliver of a block is sent by itself. Empty if a single pass over all
// edges after the last row has come is best, or nothing arrives.
std::vector<std::uint64_t> halo_cuts(const RankLoad& load, const PassWidths& width,
                                     const std::vector<std::uint64_t>& block_ends = {},
                                     const PassCosts& costs = {});

// Cuts at these shares, ascending, of `halo` rows; the last is all of them, however the shares end.
std::vector<std::uint64_t> cuts_at(const std::vector<double>& shares, std::uint64_t halo);

// When the last pass ends, after the step's beginning.
double predict_passes(const RankLoad& load, const PassWidths& width,
                      const std::vector<std::uint64_t>& cuts, const PassCosts& costs = {});

// A part of a block of the halo that arrives, and is waited for, as one.
struct HaloChunk {
  std::uint64_t first, rows;  // within the block
  std::size_t pass;           // the one that waits for it
};

// How `cuts` cut the block of `rows` rows that begins at row `begin` of the halo.
std::vector<HaloChunk> block_chunks(std::uint64_t begin, std::uint64_t rows,
                                    const std::vector<std::uint64_t>& cuts);

}  // namespace plait
