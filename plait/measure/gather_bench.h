// Times gathers of rows by global id from a table over ranks (WholeGraph, sections III-C3 and
// IV-C4): by reads of the other ranks' memory, and by messages.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "plait/measure/bench.h"
#include "plait/world/world.h"

namespace plait {

enum class GatherWay {
  // One kernel or loop reads each row where it stands: over NVLink on GPUs, in shared memory on the
  // CPU.
  reads,
  // WholeGraph's figure 4 on the left: ids are sorted by the ranks that have their rows; their
  // numbers, then ids, then rows cross by NCCL or Gloo; rows are put into the order of the ids.
  messages,
};
std::string_view to_string(GatherWay way);

struct GatherQuestion {
  std::uint64_t rows = 0;   // of the table; each rank has an equal range of them
  std::uint64_t width = 0;  // floats
  bool gpus = false;        // each rank's rows are on its current GPU, else in shared memory
};

// All calls are collective.
class GatherBench {
 public:
  // Makes the table; column k of row i is bench_feature(i, k). Throws DoesNotFitError on all ranks,
  // UsageError for ranks on several hosts, and Error if NCCL is missing, before anything is timed.
  GatherBench(World& world, const GatherQuestion& question);
  ~GatherBench();

  // Takes the ids that this rank gathers from here on.
  void set_ids(std::span<const std::uint64_t> ids);
  // Returns the share of all ranks' ids whose rows are another rank's.
  double crossing() const;
  // Returns the bytes of the results, of the rank with the most.
  std::uint64_t bytes() const;
  // Gathers once and returns the greatest relative error of all ranks. Rows are copied, so that any
  // error is one.
  double check(GatherWay way);
  Times time(GatherWay way, const BenchEffort& effort);

 private:
  class RowMessages;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plait
