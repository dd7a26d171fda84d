// The strategy `get` on GPUs, MGG's own design (OSDI 2023, sections 4 and 5): one kernel that reads
// remote rows where they lie, in the memory of other GPUs, each time an edge needs them, and sums
// local neighbour groups while it waits.
//
//   y_i (+)= row_scale_i * sum over edges e of row i of weight_e * x[slot_e]
//
// All of fp32. Slots below `own` are rows of x; then come whole blocks of the other ranks' rows.
// Other GPUs' rows are read by plain loads (over NVLink, or PCIe), so their memory must be mapped
// here, and must neither be written nor go away before the kernel has ended; only the caller can
// see to that.
//
// Rows are read fastest (16 bytes a lane) where x and all blocks stand at multiples of 16 bytes,
// the stride is a multiple of 4 and rows are padded to one; any others are read element by element.
#pragma once

#include <cstdint>
#include <span>

#include "plait/kernels/get_groups_cuda.h"

namespace plait {

// The rows of one other rank: slot s, from `begin` to the begin of the next block, is its row
// s - begin, at x + (s - begin) * stride.
struct PeerBlock {
  Slot begin = 0;
  const float* x = nullptr;
};

struct DeviceGetArgs {
  static constexpr std::size_t kMostBlocks = 63;

  const GetGroups* groups = nullptr;
  const Slot* slots = nullptr;     // one an edge
  const float* weights = nullptr;  // one an edge, or null: all 1
  const float* x = nullptr;        // own rows
  std::span<const PeerBlock>
      blocks;                // in memory of the host, ascending; local edges are below them
  std::uint64_t stride = 0;  // floats from a row to the next, in x and in all blocks
  std::uint64_t width = 0;
  float* y = nullptr;
  std::uint64_t y_stride = 0;
  const float* row_scale = nullptr;  // one a row, or null: all 1
  bool accumulate = false;           // add to y instead of overwriting it

  // get_scratch() floats at a multiple of 16 bytes: a row's sums are written there and added in
  // order, so that the result has the same bits each time, whatever dist, wpb and asynchronous.
  // Null: they are added to y by atomics, as MGG does, which takes no memory but is not repeatable.
  float* partial_sums = nullptr;

  // MGG's parameters, beside ps (GetGroupOptions). None changes what is summed.
  std::uint32_t dist = 2;  // local, and remote, groups that a warp takes turns with; 1 to 16
  std::uint32_t wpb = 4;   // warps a block; 1 to 16
  bool asynchronous =
      true;  // fetch the next remote rows while summing, instead of waiting for them
};

// Floats that `partial_sums` needs.
std::uint64_t get_scratch(const GetGroups& groups, std::uint64_t width);

// Throws UsageError for parameters out of range.
void spmm_get(const DeviceGetArgs& args, cudaStream_t stream);

}  // namespace plait
