// Measured constants of a machine, apart from the algorithms that use them. They decide how fast a
// step is, never what it computes.
//
// The profile of the H200 is built in. Another one is read from the JSON file that the environment
// variable PLAIT_MACHINE names: a flat object with the names of the members below. Fields that it
// leaves out keep the H200's values. Without this variable, runs on GPUs take the profile of what
// `plait doctor --measure` measured, if it did (exchange/shared_machine.h). All ranks must have the
// same profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

// Costs of the passes of a pipelined operation (halo_schedule.h), in seconds unless said otherwise,
// fitted to steps measured on four H200s (docs/performance.md).
struct PassCosts {
  double link = 375e9;             // bytes per second into one GPU
  double first_row = 29e-6;        // until rows begin to arrive
  double pass = 7.5e-6;            // per pass, besides its work: a wait and launches
  double row = 1.13e-10;           // per row with an edge in the pass, and per slice of the width
  double edge = 1.6e-12;           // per edge, and per slice
  double edge_byte = 1 / 16.8e12;  // per byte of a row that an edge reads
  // Rows of no more than these bytes stand in the GPU's cache for all edges but the first. Of more
  // bytes, the cache is assumed to hold `cache` bytes, and each edge to another row costs a miss,
  // per slice. Communities and other orders that keep rows together are not known.
  double cache = 50e6;
  double miss = 3.9e-12;
  double first_byte = 1 / 2.89e12;  // per byte of a row, own or of the halo, that is read at first
  // Costs of attention and extrema, in place of `edge_byte` and `row`: a warp works on one row at a
  // time and waits for its first reads in every pass. The bytes were fitted to one H200 (table of
  // widths in docs/performance.md), the rows to two H100s with one and with two passes.
  double work_edge_byte = 1 / 6.3e12;
  double attention_row = 1.5e-9;
  double extremum_row = 3e-10;
  double y_byte = 1 / 8e12;   // per byte of y read or written
  double slice = 256;         // bytes of a row that are summed at once
  double beside_link = 1.16;  // factor of the time of a pass while rows arrive
};

// The constants of one kind of machine. All numbers are above 0.
struct MachineProfile {
  std::string name = "H200";
  PassCosts passes;
  // NCCL, which brings the rows of bulk: its bytes per second into one GPU, and the seconds until
  // rows begin to arrive.
  double nccl_link = 290e9;
  double nccl_begin = 20e-6;
  // A kernel picks rows and pushes them beside a sum; they leave one GPU at so many bytes per
  // second. The rate is fitted to pipelined on a binary tree over four H200s (docs/performance.md).
  double picked_link = 235e9;
  // Of rows that a kernel reads in other GPUs' memory, one per edge (get): bytes per second into
  // one GPU, and seconds per row besides.
  double peer_reads = 304e9;
  double peer_row = 5.5e-11;
  // Warps that a GPU runs at once, about.
  std::uint32_t warps_at_once = 5000;
  // Edges per row, on average, up to which several groups share a warp.
  std::uint32_t short_group = 32;
  // Edges per row, on average, up to which sums of at most four columns are cut evenly by edges and
  // rows (kernels/even_cut.h). Longer rows gain more from the order of clusters.
  std::uint32_t even_row = 32;
  // Edges of a matrix from which this is done.
  std::uint32_t even_edges = 1 << 17;
  // Blocks of a kernel that pushes rows which change their type, or picked rows above
  // push_by_kernel bytes, beside a sum: about as many as fill a link.
  std::uint32_t pick_blocks = 32;
  // Blocks of a kernel that pushes all rows and their signals: they fill most of a link, and
  // leave most of the GPU to others.
  std::uint32_t push_blocks = 48;
  // Bytes to all peers up to which one kernel pushes them; beyond, copy engines do.
  std::uint64_t push_by_kernel = std::uint64_t{24} << 20;
  // Bytes of a halo up to which steps are worth recording. A recorded step pushes by a kernel, as
  // copies between GPUs are slow in replayed graphs; it saves the host's time, which hides behind a
  // larger step. On two H200s, training steps with halos of 15, 30 and 60 MB took 8, 4 and 2% less
  // time recorded than not, and with 1.2 GB 2% more.
  std::uint64_t recorded_halo = std::uint64_t{96} << 20;
  // Bytes that the partial sums of strategy `get` may take; beyond, sums are added by atomics.
  std::uint64_t get_partial_sums = std::uint64_t{8} << 30;
};

// Returns the profile in use, which is read once, by the first call. Throws Error if PLAIT_MACHINE
// names a file that cannot be read or is not a profile. Any thread may call it.
const MachineProfile& machine();
// Tells whether PLAIT_MACHINE names a profile.
bool machine_is_given();
// Puts this profile in use from here on, unless PLAIT_MACHINE names one. To be called before other
// threads begin, and before anything is planned.
void use_machine(const MachineProfile& profile);

// Reads a profile. Throws an Error that names `source` for text that is not a JSON object, unknown
// fields, and values that are not positive numbers.
MachineProfile parse_machine(std::string_view json, const std::string& source);
// Writes a profile as parse_machine() reads it, on one line.
std::string to_json(const MachineProfile& profile);

}  // namespace plait
