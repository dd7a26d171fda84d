// The strategy `get` on GPUs, MGG's own design (OSDI 2023, sections 4 and 5): one kernel that reads
// remote rows where they lie, in the memory of other GPUs, each time an edge needs them, and sums
// local neighbour groups while it waits.
//
//   y_i (+)= row_scale_i * sum over edges e of row i of weight_e * x[slot_e]
//
// All numbers are fp32. Slots below the first block are rows of x; then come whole blocks of the
// other ranks' rows. Other GPUs' rows are read by plain loads (over NVLink, or PCIe), or by
// NVSHMEM's device functions. Their memory must be mapped here, and must neither be written nor go
// away before the kernel has ended; the caller sees to that.
//
// Rows are read fastest (16 bytes per lane) if x and all blocks stand at multiples of 16 bytes, the
// stride is a multiple of 4 and rows are padded to such a multiple; any others are read element by
// element.
#pragma once

#include <cstdint>
#include <span>

#include "plait/kernels/cuda/get_groups.cuh"

namespace plait {

class GetModule;

// The rows of one other rank. Slot s, from `begin` to the begin of the next block, is its row s -
// begin, at x + (s - begin) * stride.
struct PeerBlock {
  Slot begin = 0;
  const float* x = nullptr;
  // For NVSHMEM's device functions: the other rank. x is then the address in this rank's own part
  // of NVSHMEM's heap at which the rows stand in the other's part.
  std::uint8_t rank = 0;
};

// Arguments of spmm_get(). Pointers are to memory that the GPU reaches, unless said otherwise.
struct DeviceGetArgs {
  static constexpr std::size_t kMostBlocks = 63;

  const GetGroups* groups = nullptr;
  const Slot* slots = nullptr;     // one per edge
  const float* weights = nullptr;  // one per edge, or null: all 1
  const float* x = nullptr;        // own rows
  std::span<const PeerBlock>
      blocks;                // in memory of the host, ascending; local edges are below them
  std::uint64_t stride = 0;  // floats from one row to the next, in x and in all blocks
  std::uint64_t width = 0;
  float* y = nullptr;
  std::uint64_t y_stride = 0;
  const float* row_scale = nullptr;  // one per row, or null: all 1
  bool accumulate = false;           // add to y instead of overwriting it

  // get_scratch() floats at a multiple of 16 bytes: a row's sums are written there and added in
  // order, so that the result has the same bits each time, whatever the settings are but ps,
  // remote_ps and dw.
  // Null: sums are added to y by atomics, as MGG does, which takes no memory but is not repeatable.
  float* partial_sums = nullptr;

  GetTuning tuning = {};  // all but sums, and ps and remote_ps, which the groups have
  // The kernels of ReadWith::nvshmem, prepared by NVSHMEM (Nvshmem::prepare()); otherwise null.
  const GetModule* module = nullptr;
};

// Returns the floats that `partial_sums` needs.
std::uint64_t get_scratch(const GetGroups& groups, std::uint64_t width);

// Throws UsageError as spmm_get() does, and enqueues nothing.
void require_get(const DeviceGetArgs& args);

// Enqueues the sum on the stream. Throws UsageError for parameters out of range, and for remote
// edges without blocks; DoesNotFitError if a block would take more than the current GPU has
// (plan/get_resources.h).
void spmm_get(const DeviceGetArgs& args, cudaStream_t stream);

}  // namespace plait
