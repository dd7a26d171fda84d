// What a run will take of each rank's memory, said before any of it is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plait/partition/quality.h"

namespace plait {

struct MemoryQuestion {
  std::uint64_t width = 0;           // of the rows that are aggregated
  std::uint64_t feature_floats = 0;  // input features held by all ranks together
  std::uint64_t activations = 0;     // floats a vertex that training keeps; 0: aggregation alone
  bool weighted = false;
  bool symmetric = false;  // the transposed shard is the shard itself
  bool gradient = false;   // the transposed shard is needed
  bool replicate = false;  // all remote rows are brought in, not the halo alone
  bool wide_ids = false;   // 64-bit vertex ids
  bool contiguous = true;  // the partition is ranges
};

// What strategies on GPUs keep of remote rows.
enum class GpuHalo {
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

// Arrays that stay for the whole run, and, as one item, the most that setting up takes beside them.
// The graph's own file is mapped, shared by all ranks and given back under pressure: not counted.
// For a graph that is not symmetric, the transposed shard is taken to be as large as the shard.
MemoryPlan plan_memory(const PartitionQuality& quality, const MemoryQuestion& question);

// The same for the memory of GPUs, one a rank. Of neighbour groups, those that long rows are cut
// into, and their sums, are estimated for `get` alone; of other strategies they are few.
MemoryPlan plan_gpu_memory(const PartitionQuality& quality, const MemoryQuestion& question,
                           GpuHalo halo);

// Throws DoesNotFitError with the figures of the first rank that needs more than its GPU has free.
void require_fit_on_gpus(const MemoryPlan& plan, const std::vector<std::uint64_t>& free);

// Throws DoesNotFitError with the figures if the ranks, all on this host, need more than is free.
void require_fit(const MemoryPlan& plan, std::uint64_t available);

}  // namespace plait
