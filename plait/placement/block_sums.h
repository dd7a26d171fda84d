// A block of the halo that comes as sums. In place of the rows that its edges read, each own row
// with such edges gets the sum of them, made by the rows' owner. The result is a shard again: a sum
// is a row of the halo that one own row reads, by one edge of weight 1.
//
// Code for the host and the GPU: contract_blocks() (cuda/block_sums.cuh) runs it on shards of GPUs,
// tests on the CPU.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"
#include "plait/base/lower_bound.h"

namespace plait {

// The numbers that one row contributes, or all rows before one.
struct BlockSumCounts {
  EdgeOffset kept;     // edges of the shard, including edges to sums
  EdgeOffset summed;   // edges that the owner sums
  std::uint64_t sums;  // rows with such edges

  PLAIT_HOST_DEVICE friend BlockSumCounts operator+(const BlockSumCounts& a,
                                                    const BlockSumCounts& b) {
    return {a.kept + b.kept, a.summed + b.summed, a.sums + b.sums};
  }
};

// The arrays to which the contracted shard goes, and the owner's sums, a CSR.
struct BlockSumResult {
  EdgeOffset* offsets;      // own + 1
  Slot* slots;              // one per edge kept
  float* weights;           // one per edge kept, or null
  EdgeOffset* sum_offsets;  // sums + 1, in the order of own rows
  std::uint32_t* sum_rows;  // one per edge summed: the owner's row
  float* sum_weights;       // one per edge summed, or null
};

// A shard and a block of its halo. Nothing is owned.
struct BlockToSum {
  const EdgeOffset* offsets;  // own + 1
  const Slot* slots;          // one per edge, ascending in a row
  const float* weights;       // one per edge, or null
  std::uint64_t own;          // rows
  std::uint64_t begin, end;   // the block's slots: begin .. end - 1
  const std::uint32_t* row;   // the owner's row behind each slot, or null: row 0 is the first

  // The edges of row i that read the block.
  struct Edges {
    EdgeOffset begin, end;
    PLAIT_HOST_DEVICE EdgeOffset count() const { return end - begin; }
  };
  PLAIT_HOST_DEVICE Edges edges_of(std::uint64_t i) const {
    const EdgeOffset from = lower_bound(slots, offsets[i], offsets[i + 1], begin);
    return {from, lower_bound(slots, from, offsets[i + 1], end)};
  }

  // Returns the numbers of row i. One past the last row has none, so that its scanned counts are
  // the totals.
  PLAIT_HOST_DEVICE BlockSumCounts counts(std::uint64_t i) const {
    if (i >= own) return {0, 0, 0};
    const EdgeOffset read = edges_of(i).count(), sums = read > 0 ? 1 : 0;
    return {offsets[i + 1] - offsets[i] - read + sums, read, sums};
  }

  // Writes the part of the result that row i makes; for i = own the ends of the offsets. `lanes`
  // threads share the work; this one is number `lane`. before: the counts of all rows before; sums:
  // the number of sums of all rows.
  PLAIT_HOST_DEVICE void write(std::uint64_t i, const BlockSumCounts& before, std::uint64_t sums,
                               const BlockSumResult& out, int lane, int lanes) const {
    const Edges read = i < own ? edges_of(i) : Edges{0, 0};
    if (lane == 0) {
      out.offsets[i] = before.kept;
      if (i == own || read.count() > 0) out.sum_offsets[before.sums] = before.summed;
    }
    if (i == own) return;
    const EdgeOffset first = offsets[i];
    if (lane == 0 && read.count() > 0) {
      const EdgeOffset at = before.kept + (read.begin - first);
      out.slots[at] = static_cast<Slot>(begin + before.sums);
      if (weights != nullptr) out.weights[at] = 1;
    }
    const EdgeOffset fewer = read.count() > 0 ? read.count() - 1 : 0;
    for (EdgeOffset e = first + lane; e < offsets[i + 1]; e += lanes) {
      const std::uint64_t slot = slots[e];
      if (slot >= begin && slot < end) {
        const EdgeOffset at = before.summed + (e - read.begin);
        out.sum_rows[at] =
            row != nullptr ? row[slot - begin] : static_cast<std::uint32_t>(slot - begin);
        if (weights != nullptr) out.sum_weights[at] = weights[e];
        continue;
      }
      const bool after = slot >= end;
      const EdgeOffset at = before.kept + (e - first) - (after ? fewer : 0);
      out.slots[at] = static_cast<Slot>(after ? slot - (end - begin) + sums : slot);
      if (weights != nullptr) out.weights[at] = weights[e];
    }
  }
};

}  // namespace plait
