// The memory that a run takes on each rank, known before any of it is taken. This is the one
// account of it: every command, training, inference and Python refuse a run by these figures
// (aggregate/run_memory.h, nn/memory/work_memory.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plait/partition/quality.h"
#include "plait/plan/get_tuning.h"
#include "plait/plan/halo_schedule.h"

namespace plait {

// Bytes that work on a graph holds on a rank, besides the graph and the rows that are moved.
struct WorkBytes {
  std::uint64_t kept = 0;  // held while the graph is placed, and to the end
  std::uint64_t most = 0;  // held at the most, the kept bytes among them
};

// A run as far as its memory depends on it.
struct MemoryQuestion {
  // The different widths of the rows that are aggregated, in floats.
  std::vector<std::uint64_t> widths;
  // GPUs only: what has a schedule of passes of its own; empty: sums of `widths`.
  std::vector<PassWidths> scheduled;
  std::vector<WorkBytes> work;  // by rank; empty: x and y of the widest rows
  // Bytes of the host's memory, by rank, that a command keeps during the run; empty: none.
  std::vector<std::uint64_t> beside;
  // GPUs only, by rank: the number of partial sums of rows that are cut, in one direction; empty:
  // none.
  std::vector<std::uint64_t> cut_sums;
  std::uint64_t edge_scratch = 0;  // GPUs only: floats per own row that operations over edges take
  std::uint64_t rows_per_sum = 1;  // GPUs only: rows of scratch per partial sum; extrema take 2
  DType wire = DType::f32;         // GPUs only: as in Route
  bool by_nccl = false;            // GPUs only: NCCL brings rows of other ranks
  GetTuning get = {};              // GPUs only: settings of strategy get
  // CPU only: width of the widest rows that a single rank copies, because it scales them or leaves
  // gaps between them; none: all of `widths`.
  std::optional<std::uint64_t> copied_width = {};
  bool weighted = false;
  bool symmetric = false;      // the transposed shard is the shard itself
  bool gradient = false;       // the transposed shard is needed
  bool loops = false;          // every own vertex is given a loop
  bool slot_vertices = false;  // the global id of every slot is kept
  bool wide_ids = false;       // 64-bit vertex ids
  bool contiguous = true;      // the partition is ranges

  // Returns the widest of `widths`, or 0.
  std::uint64_t width() const;
};

// The form in which a strategy keeps remote rows.
enum class HaloStore {
  distinct,  // on the CPU: each row that is read
  dense,     // pipelined: each row that is read, or all rows of a rank if most are read
  packed,    // bulk: as dense, and rows that others list are packed before they leave
  sums,      // partial: as dense, but sums instead of rows if they are fewer
  complete,  // replicate: all rows
  none,      // get: remote rows are read where they lie
  paged,     // paged: as dense, in managed memory
};

// One line of the account.
struct MemoryItem {
  std::string name;
  std::vector<std::uint64_t> bytes;  // by rank
};

// The account of a run. Totals that would overflow stay at the largest number.
struct MemoryPlan {
  std::vector<MemoryItem> items;

  // Returns the bytes of one rank, of the rank that needs most, and of all ranks together.
  std::uint64_t rank_total(int rank) const;
  std::uint64_t largest_rank() const;
  std::uint64_t total() const;
};

// Returns the bytes of the host's memory that each rank holds at the moment when it holds the most:
// arrays that stay for the whole run, the memory of the work on them, and, as one item, the excess
// of placing the graph over everything after it. The graph's own file is mapped, shared by all
// ranks and given back under pressure, so it is not counted; neither are the program and its
// libraries. For a graph that is not symmetric, the transposed shard is taken to be as large as the
// shard.
MemoryPlan plan_memory(const PartitionQuality& quality, const MemoryQuestion& question,
                       HaloStore halo);

// Returns the same account for the memory of GPUs, one per rank.
MemoryPlan plan_gpu_memory(const PartitionQuality& quality, const MemoryQuestion& question,
                           HaloStore halo);

// Returns the account of the host's memory that ranks with GPUs take: what they keep there, and the
// rows of the graph on their way to the GPUs.
MemoryPlan plan_host_of_gpus(const PartitionQuality& quality, const MemoryQuestion& question);

// Tells whether no rank needs more than its GPU has free, bytes by rank.
bool fits_on_gpus(const MemoryPlan& plan, const std::vector<std::uint64_t>& free);

// Throws DoesNotFitError with the figures of the first rank that needs more than its GPU has free.
// `free`: bytes by rank.
void require_fit_on_gpus(const MemoryPlan& plan, const std::vector<std::uint64_t>& free);

// Throws DoesNotFitError with the figures if all ranks, which share this host, together need more
// than `available` bytes.
void require_fit(const MemoryPlan& plan, std::uint64_t available);

}  // namespace plait
