// Rivals of strategy `get`: the same sums of neighbour groups on rows that come another way.
//
// One process drives the GPUs of all ranks, rank 0's, while the others wait: managed memory belongs
// to one process, and both rivals are measured alike. A rank's work is enqueued on its GPU, and
// GPUs wait for each other by events. This header needs no header of CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/measure/bench.h"
#include "plait/plan/get_tuning.h"

namespace plait {

enum class GetRival {
  // Unified memory, as MGG-UVM (OSDI 2023, section 7.1). One managed array holds the rows of all
  // vertices. Each step, every GPU writes its own rows there, and then sums, reading remote rows as
  // `get` does: pages that are not on the GPU that reads or writes them are brought by page faults,
  // from the GPU that has them. The host copies nothing, and nothing is prefetched or advised.
  managed_rows,
  // PUT, which MGG rejects (first version on arXiv, section 3.3): for each remote edge the owner's
  // GPU writes the row into the reader's memory, while the reader sums local groups. Remote groups
  // are summed when all rows are there. The reader has room for one row per remote edge.
  pushed_rows,
};

class RivalState;

class RivalBench : public AggregateBench {
 public:
  // Collective; each rank has a GPU. Places the graph on all of them. The references outlive this
  // object. Throws, on all ranks, DoesNotFitError if the rows do not fit in the memory that is free
  // on any GPU (managed memory: so that no page is ever driven out), and Error if rank 0's process
  // does not see the GPUs of all ranks, if a GPU does not bring pages of managed memory on demand,
  // or if GPUs cannot write to each other's memory.
  RivalBench(World& world, const AnyCsr& graph, const Partition& partition, GetRival rival,
             const GetTuning& tuning, std::uint64_t width);
  ~RivalBench() override;

  double check() override;
  Times time_steps(const BenchEffort& effort) override;

 private:
  std::unique_ptr<RivalState> state_;
};

}  // namespace plait
