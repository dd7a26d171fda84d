// The resources of a GPU that the kernel of strategy `get` takes, by its settings
// (kernels/cuda/get.cu), and what a GPU has of them.
//
// MGG's model (OSDI 2023, section 6, equation 1): per block, shared memory holds the ids of a
// group's neighbours for each warp, and for each warp one row of sums and one fetched row of D
// floats,
//
//   WPW = 2 ps D dist          SMEM = 4 ps wpb + 2 * 4 wpb D
//   numWarps = max(local, remote) / dist       numBlocks = numWarps / wpb
//
// where local and remote are the numbers of neighbour groups. The kernel here keeps ids and sums in
// registers and cuts the width into slices of at most 128 columns, so that ps and D take no shared
// memory. A warp has kGetStages batches in it: one arrives, one is summed. A lane fetches
// kGetBatch pieces of a batch, of 16 bytes, or of 4 if rows do not stand at multiples of 16 bytes:
//
//   shared = wpb * kGetStages * kGetBatch * 32 * piece
//   + wpb * 32 * 16  if blocks read rows: the addresses of each batch
//   0                if warps read at addresses and wait: rows go to registers
//
// NVSHMEM's device functions write to shared memory, so that their warps have batches too.
//
//   warps = max(local, remote) / dist          without interleaving: local / dist + remote / dist
//   blocks = warps / wpb                       for each slice of the width
//
// Divisions are rounded up.
#pragma once

#include <cstdint>

#include "plait/plan/get_tuning.h"

namespace plait {

inline constexpr int kGetBatch = 4;       // pieces of rows that a lane has in flight
inline constexpr int kGetStages = 2;      // batches of a warp in shared memory
inline constexpr int kGetRegisters = 64;  // of a thread, at most
inline constexpr int kGetRowToCopy = 16;  // bytes of the address of a row, and of its place
// Blocks that a grid can have side by side.
inline constexpr std::uint64_t kMostGridBlocks = (std::uint64_t{1} << 31) - 1;

// The resources of one block. Shared memory is in bytes.
struct GetBlock {
  std::uint64_t shared = 0, registers = 0, warps = 0;
};
// Returns the resources of a block whose lanes fetch pieces of 4 or 16 bytes.
GetBlock get_block(const GetTuning& tuning, std::uint64_t piece);

// A multiprocessor's resources for all blocks on it, and what one block may have of the shared
// memory. The values are an H100's (CUDA's programming guide, compute capability 9.0).
struct GpuLimits {
  std::uint64_t shared_of_block = 227 << 10;
  std::uint64_t shared = 228 << 10;
  std::uint64_t shared_kept = 1 << 10;  // of each block, by CUDA itself
  std::uint64_t registers = 65536;
  std::uint64_t warps = 64;
  std::uint64_t blocks = 32;
};

// Returns the number of such blocks that can be on one multiprocessor at once; 0: they cannot run.
std::uint64_t blocks_at_once(const GetBlock& block, const GpuLimits& limits);

// Throws a DoesNotFitError that names the limit if not even one block can be.
void require_runs(const GetBlock& block, const GpuLimits& limits);

// The warps and blocks that one slice of the width takes. The first local_warps warps have local
// groups; remote groups begin with warp first_remote.
struct GetGrid {
  std::uint64_t warps = 0, blocks = 0;
  std::uint64_t local_warps = 0, first_remote = 0, remote_warps = 0;
};
// Returns the grid for so many groups. Throws DoesNotFitError above kMostGridBlocks blocks.
GetGrid get_grid(const GetTuning& tuning, std::uint64_t local, std::uint64_t remote);

}  // namespace plait
