// A table over ranks: rows by global id, which any rank reads by plain loads.
//
// On the CPU, rows stand in memory that all ranks of a host share (place host: the rows of each
// rank in its part of the symmetric heap), in each rank's own memory (replicated) or in the dataset
// (mapped).
//
// On GPUs, place gpu has each rank's rows on its GPU, in the symmetric heap (WholeGraph, section
// 3.2), and a remote row crosses NVLink at about 475 GB/s per H100. Place host has all rows once in
// the host's memory, which GPUs map and read over PCIe at about 55 GB/s. Replicated: each GPU has
// all rows, and reads them at 2 to 3 TB/s.
#pragma once

#include <memory>
#include <span>

#include "plait/base/device.h"
#include "plait/table/table_layout.h"
#include "plait/world/world.h"

namespace plait {

// Rows that do not change.
class Table {
 public:
  // Collective; on GPUs for the current GPU of each rank. Makes the table, each rank its own rows
  // of the source by all threads, and returns when all rows are there. Settings, source and device
  // are the same on all ranks. Throws UsageError for place mapped, on the CPU also for place gpu,
  // and for ranks on several hosts; DoesNotFitError before anything is allocated.
  static std::unique_ptr<Table> create(World& world, const TableSettings& settings,
                                       const TableSource& source, Device device);
  // Returns a table on the CPU of rows that are in this process's memory already, `stride` bytes
  // apart, and stay with `owner`. Nothing is copied.
  static std::unique_ptr<Table> map(std::shared_ptr<const void> owner, const std::byte* first,
                                    const TableSettings& settings, std::uint64_t stride);
  // Returns dense features as they are in the dataset; throws UsageError for sparse ones.
  static std::unique_ptr<Table> map(const Features& features);
  // All ranks destroy their tables in the same order. Waits for the GPU.
  virtual ~Table() = default;

  // Returns the rows as this rank reads them, for gather_rows(), or for kernels: rows().gather(...)
  // gives the arguments of gpu_gather_rows() and GpuDistinctGather::gather(). keep_hot() changes
  // it.
  const TableRows& rows() const { return rows_; }
  // Gathers: out row i = row ids[i] in fp32, `stride` floats after the one before. On the CPU by
  // all threads; on a GPU the gather is enqueued on the cudaStream_t, never waits, and has ids and
  // results in memory that the GPU reaches. Several threads may gather at once, on streams of their
  // own.
  void gather(const std::uint64_t* ids, std::uint64_t count, float* out, std::uint64_t stride,
              void* stream = nullptr) const;

  // Not collective. Copies these rows, ascending, to this GPU, in place of those that were copied
  // before (hot_rows.h chooses them); none ends it. Gathers count from here on. Waits for the GPU;
  // no other thread may gather meanwhile. Throws DoesNotFitError, and UsageError for ids that do
  // not ascend and for tables on the CPU, whose ranks share their host's memory; then no row is
  // copied.
  virtual void keep_hot(std::span<const std::uint64_t> ids);
  // Returns the numbers of rows that were read since keep_hot(). Waits for the GPU.
  virtual GatherCounts counts() const { return {}; }

 protected:
  explicit Table(Device device) : device_(device) {}

  TableRows rows_;

 private:
  const Device device_;
};

}  // namespace plait
