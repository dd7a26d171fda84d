// The memory that a run takes of each rank, said before any of it is taken. The one account of it:
// what is asked for here is refused by every command, by training, by inference and by Python
// (aggregate/run_memory.h, nn/work_memory.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plait/partition/quality.h"

namespace plait {

// Bytes that work on a graph holds on a rank besides the graph and the rows that are moved.
struct WorkBytes {
  std::uint64_t kept = 0;  // while the graph is placed, and to the end
  std::uint64_t most = 0;  // at the most, those that are kept among them
};

// Edges of a neighbour group of strategy get, whose settings are MGG's by default.
constexpr std::uint64_t kGetGroup = 16;

struct MemoryQuestion {
  // The different widths of the rows that are aggregated.
  std::vector<std::uint64_t> widths;
  std::vector<WorkBytes> work;  // by rank; empty: x and y of the widest rows
  // On GPUs, by rank: sums of pieces of rows that are cut, in one direction; empty: none.
  std::vector<std::uint64_t> cut_sums;
  std::uint64_t edge_scratch = 0;  // on GPUs, floats for each own row, of operations over edges
  bool weighted = false;
  bool symmetric = false;      // the transposed shard is the shard itself
  bool gradient = false;       // the transposed shard is needed
  bool loops = false;          // every own vertex is given a loop
  bool slot_vertices = false;  // the global id of every slot is kept
  bool wide_ids = false;       // 64-bit vertex ids
  bool contiguous = true;      // the partition is ranges

  std::uint64_t width() const;  // the widest
};

// What strategies keep of remote rows.
enum class HaloStore {
  distinct,  // on the CPU: each row that is read
  dense,     // pipelined: each row that is read; all rows of a rank of which most are
  packed,    // bulk: the same, and rows that others list are packed before they leave
  sums,      // partial: as dense, but sums instead of rows where they are fewer
  complete,  // replicate: all rows
  none,      // get: remote rows are read where they lie
  paged,     // paged: as dense, in managed memory
};

struct MemoryItem {
  std::string name;
  std::vector<std::uint64_t> bytes;  // by rank
};

struct MemoryPlan {
  std::vector<MemoryItem> items;

  std::uint64_t rank_total(int rank) const;
  std::uint64_t largest_rank() const;
  std::uint64_t total() const;  // of all ranks
};

// What a rank holds when it holds the most: arrays that stay for the whole run, what the work on
// them takes, and as one item the rest of what placing the graph takes, where that is more than
// what comes after it. The graph's own file is mapped, shared by all ranks and given back under
// pressure: not counted, and neither are the program and its libraries. For a graph that is not
// symmetric, the transposed shard is taken to be as large as the shard.
MemoryPlan plan_memory(const PartitionQuality& quality, const MemoryQuestion& question,
                       HaloStore halo);

// The same for the memory of GPUs, one a rank.
MemoryPlan plan_gpu_memory(const PartitionQuality& quality, const MemoryQuestion& question,
                           HaloStore halo);

// Throws DoesNotFitError with the figures of the first rank that needs more than its GPU has free.
void require_fit_on_gpus(const MemoryPlan& plan, const std::vector<std::uint64_t>& free);

// Throws DoesNotFitError with the figures if the ranks, all on this host, need more than is free.
void require_fit(const MemoryPlan& plan, std::uint64_t available);

}  // namespace plait
