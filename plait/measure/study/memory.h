// The memory of what training on samples keeps (WholeGraph, table IV): planned, and measured while
// it is taken.
#pragma once

#include <cstdint>
#include <functional>

#include "plait/graph/dataset.h"
#include "plait/measure/bench.h"
#include "plait/measure/study/entry.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait {

struct StudyMemoryInput {
  std::function<Dataset()> graph;  // reads or makes the dataset anew
  std::uint64_t seed = 0;
  int repetitions = 1;
};

struct StudyMemory {
  Times times;                              // of taking it; of an epoch of training
  std::uint64_t planned = 0, measured = 0;  // bytes of the rank with the most
};

// Collective. Takes the entry's component as often as `repetitions` say, and frees it again.
// On GPUs, measures the bytes in use on the GPU. The median counts, because the first time loads
// code as well. On the CPU, measures the memory of each process, with the shared memory that it
// touches. Throws as the component that it makes.
StudyMemory memory_for_study(World& world, const Dataset& dataset, const Partition& partition,
                             const StudyEntry& entry, const StudyMemoryInput& input);

}  // namespace plait
