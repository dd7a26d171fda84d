// The choice of the split of embedding tables, by their sizes and by the bytes that a step moves.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/base/dtype.h"
#include "plait/embedding/embedding_layout.h"

namespace plait {

// A table as far as the choice depends on it.
struct EmbeddingUse {
  std::uint64_t rows = 0;
  double ids = 1;  // per sample, on average
};

struct EmbeddingQuestion {
  std::vector<EmbeddingUse> tables;
  std::uint64_t width = 0;
  int ranks = 1;
  std::uint64_t samples = 2048;  // of each rank in a step
  DType type = DType::f32;       // of the numbers in rows; the choice does not depend on it
};

// Returns the split of each table and, of whole tables, the owner.
//
//   replicated  tables of at most as many rows as a rank has samples: to sum all their gradients
//               over ranks moves no more bytes than to bring one row per sample
//   rows        tables of more bytes than an equal share of all
//   columns     tables whose ids are more than an equal share of the reads, if each rank gets at
//               least a cache line of a row; else rows. Likewise tables that are read most, until
//               the others leave no rank with more than 1.1 times the mean of reads
//   table       all others, the most read ones first, each to the rank with the fewest reads;
//               tables without ids, the largest first, to the rank that has the fewest rows of
//               whole tables
//
// With one rank, all tables are whole. Equal questions get equal answers.
std::vector<EmbeddingTable> choose_splits(const EmbeddingQuestion& question);

// Bytes of a rank: of its pieces, of the rows that it reads from them in a step, and of the sums
// that it sends to other ranks, forward. A gradient moves as many bytes the other way.
struct EmbeddingCost {
  std::uint64_t memory = 0, read = 0, sent = 0;
};
// Returns the costs by rank. Ids are taken to fall upon rows of all ranks alike.
std::vector<EmbeddingCost> embedding_costs(const EmbeddingQuestion& question,
                                           const std::vector<EmbeddingTable>& tables);

}  // namespace plait
