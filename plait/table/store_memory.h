// The memory of a dataset that is kept for training on samples (WholeGraph, table IV): features in
// a table, the graph's structure, labels and copies of hot rows, by component and rank, known
// before any of it is taken; and the choice of the place of the features.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/plan/memory_plan.h"
#include "plait/table/table_layout.h"

namespace plait {

// A dataset as far as its memory depends on it.
struct StoreQuestion {
  TableSettings table;  // the features
  int ranks = 1;
  bool gpus = false;  // each rank has a GPU; else ranks share this host's memory
  // Ranks on the CPU read the dataset where its file is mapped; else each has read it into memory.
  bool mapped_file = true;
  std::uint64_t structure = 0;   // bytes of the graph, with weights of its edges
  bool shard_structure = false;  // GPUs share it out
  std::uint64_t labels = 0;      // bytes of all labels
  std::uint64_t hot_rows = 0;    // copies on each GPU
};

// Returns the question of a dataset whose features stand in a table; its settings are those given,
// but for the numbers of rows and, if it is 0, of columns.
StoreQuestion store_question(const Dataset& dataset, TableSettings table, int ranks, bool gpus);

// Bytes of each component.
struct StorePlan {
  MemoryPlan memory;       // by rank: of its GPU, or of the host if there are no GPUs
  std::uint64_t host = 0;  // in the host's memory, which GPUs map

  // Returns all bytes together.
  std::uint64_t total() const;
};

// Returns the account for the place in the settings. Every GPU holds all labels and the whole
// structure, or a share of it; ranks on the CPU read these where the dataset's file is mapped,
// which takes no memory of their own, or else have them in memory each. Throws errors as
// TableLayout.
StorePlan plan_store(const StoreQuestion& question);

// Memory that is free.
struct FreeMemory {
  std::vector<std::uint64_t> gpus;  // by rank
  std::uint64_t host = 0;
  bool peers = true;      // GPUs reach each other's memory
  bool mappable = false;  // the features stand in the dataset in the form that is wanted
};

// Returns the first place of these in which all fits. On GPUs: replicated, if the features take at
// most an eighth of what is free on each GPU, or there is one rank; gpu; host; replicated. On the
// CPU: mapped, host. Throws DoesNotFitError with the figures of all components if there is none.
// All ranks must ask with the same figures.
TablePlace choose_place(const StoreQuestion& question, const FreeMemory& free);

}  // namespace plait
