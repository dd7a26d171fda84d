// The models with which MGG and GNNAdvisor choose the settings of their kernels, as published, to
// compare with what runs here (get_resources.h). Sizes are in bytes; D is the width of a row in
// floats.
//
// MGG (OSDI 2023, section 6, equations 1 to 3) has a warp work on `dist` local and `dist` remote
// groups of at most ps neighbours:
//
//   WPW = 2 ps D dist                          floats that a warp reads
//   SMEM = 4 ps wpb + 2 * 4 wpb D              shared memory of a block
//   numWarps = max(local, remote) / dist       numBlocks = numWarps / wpb
//
// It searches by measuring, within 1 <= ps <= 32, 1 <= dist <= 16, 1 <= wpb <= 16 and SMEM of at
// most what the GPU has, and so chooses nothing before a run.
//
// GNNAdvisor (OSDI 2021, section 6, equations 5 and 6) has dw threads work on a group of at most
// ngs neighbours, one warp per group, and tpb threads in a block:
//
//   WPT = ngs D / dw                           floats that a thread reads
//   SMEM = tpb / 32 * 4 D
//   dw = 32 if D >= 32, else 16
//
// It takes the ngs that makes WPT about 1024, and blocks of 32 to 128 threads whose SMEM fits.
#pragma once

#include <cstdint>

#include "plait/graph/csr.h"
#include "plait/partition/partition.h"
#include "plait/plan/get_tuning.h"

namespace plait {

// Neighbour groups of one rank's rows.
struct GroupCounts {
  std::uint64_t local = 0, remote = 0;

  friend bool operator==(const GroupCounts&, const GroupCounts&) = default;
};
// Counts the groups of the rank's rows, as the settings cut them. Looks at every edge of the rank.
GroupCounts count_groups(const AnyCsr& graph, const Partition& partition, int rank,
                         const GetTuning& tuning);

// MGG's model of one kernel.
struct MggModel {
  std::uint64_t floats_per_warp, shared, warps, blocks;

  friend bool operator==(const MggModel&, const MggModel&) = default;
};
// Divisions are rounded up. `tuning.ps` is a number, not kWholeRow.
MggModel mgg_model(const GetTuning& tuning, std::uint64_t width, const GroupCounts& groups);
// Tells whether settings are in MGG's space of search, on a GPU with so much shared memory for a
// multiprocessor.
bool in_mgg_space(const GetTuning& tuning, std::uint64_t width, std::uint64_t shared);

// GNNAdvisor's settings for a width, and what its model says of them.
struct GnnAdvisorModel {
  std::uint64_t ngs, dw, tpb;
  std::uint64_t floats_per_thread, shared;

  friend bool operator==(const GnnAdvisorModel&, const GnnAdvisorModel&) = default;
};
// Returns the settings on a GPU whose blocks have at most `shared` bytes: the largest block of 128,
// 64 or 32 threads that fits, or one of 32 threads. The published range of `shared` is 48 to 96 KB.
GnnAdvisorModel gnnadvisor_model(std::uint64_t width, std::uint64_t shared = 48 << 10);

}  // namespace plait
