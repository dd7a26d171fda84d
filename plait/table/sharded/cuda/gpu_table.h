// A table over ranks with a GPU each: rows by global id, which kernels of any rank read by plain
// addresses. This header needs no header of CUDA.
//
// Place gpu: each rank's rows are on its GPU, in the symmetric heap (WholeGraph, section 3.2), and
// a remote row crosses NVLink at about 475 GB/s per H100. Place host: all rows are once in the
// host's memory, which GPUs map and read over PCIe at about 55 GB/s. Replicated: each GPU has all
// rows, and reads them at 2 to 3 TB/s.
#pragma once

#include <memory>
#include <span>

#include "plait/table/table_layout.h"
#include "plait/world/world.h"

namespace plait {

// Rows that do not change.
class GpuTable {
 public:
  // Collective, for the current GPU of each rank. Makes the table, each rank its own rows of the
  // source by all threads, in blocks that are converted on the GPU, and returns when all rows are
  // there. Settings and source are the same on all ranks. Throws UsageError for place mapped, and
  // for ranks on several hosts; DoesNotFitError before anything is allocated.
  static std::unique_ptr<GpuTable> create(World& world, const TableSettings& settings,
                                          const TableSource& source);
  // All ranks destroy their tables in the same order. Waits for the GPU.
  virtual ~GpuTable() = default;

  // Returns the rows as this rank's kernels read them, for gpu_gather_rows() and
  // GpuDistinctGather::gather(): rows().gather(...). keep_hot() changes it.
  const TableRows& rows() const { return rows_; }
  // Enqueues the gather on the cudaStream_t, and never waits: out row i = row ids[i] in fp32,
  // `stride` floats after the one before. Ids and results are in memory that the GPU reaches.
  // Several threads may do so at once, on streams of their own.
  void gather(const std::uint64_t* ids, std::uint64_t count, float* out, std::uint64_t stride,
              void* stream) const;

  // Not collective. Copies these rows, ascending, to this GPU, in place of those that were copied
  // before (hot_rows.h chooses them); none ends it. Gathers count from here on. Waits for the GPU;
  // no other thread may gather meanwhile. Throws DoesNotFitError and UsageError; then no row is
  // copied.
  virtual void keep_hot(std::span<const std::uint64_t> ids) = 0;
  // Returns the numbers of rows that were read since keep_hot(). Waits for the GPU.
  virtual GatherCounts counts() const = 0;

 protected:
  TableRows rows_;
};

}  // namespace plait
