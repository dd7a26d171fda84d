// The memory of embedding tables over ranks, by component and rank, known before any of it is
// taken.
#pragma once

#include "plait/embedding/embedding_choice.h"
#include "plait/embedding/row_update.h"
#include "plait/plan/memory_plan.h"

namespace plait {

// Tables and their training as far as memory depends on them.
struct EmbeddingMemory {
  EmbeddingQuestion use;
  std::vector<EmbeddingTable> tables;  // as they are divided
  RowRule rule = RowRule::sgd;         // of the optimiser, whose states are floats
  bool gpus = false;                   // each rank has a GPU; else ranks share this host's memory
};

// Returns the account: rows; states of the optimiser; and of a step the ids with the sums of other
// ranks, the sorting by row of ids and of the sums of replicated tables, on GPUs the gradients of
// all ranks' bags and these sums, and sparse gradients, the last three at the most. Throws errors
// as EmbeddingLayout. Totals that would overflow stay at the largest number.
MemoryPlan plan_embeddings(const EmbeddingMemory& memory);

}  // namespace plait
