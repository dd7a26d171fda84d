// Embedding tables over ranks: which rank has which rows and columns of which table.
//
// All tables of a collection have rows of one width. The piece of a table on a rank is a matrix of
// its own rows and columns, in the order of ids, without gaps.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plait/table/stored_rows.h"

namespace plait {

// How a table is divided among ranks (DLRM: "model parallelism" of embeddings).
enum class EmbeddingSplit {
  replicated,  // every rank has all of it
  table,       // its owner has all of it
  columns,     // every rank has some columns of all rows
  rows,        // rows are dealt out by hash (place_of())
};
// Throws a UsageError that lists the names.
EmbeddingSplit parse_embedding_split(std::string_view name);
std::string_view to_string(EmbeddingSplit split);

struct EmbeddingTable {
  std::uint64_t rows = 0;
  EmbeddingSplit split = EmbeddingSplit::table;
  int owner = 0;  // of split `table`
};

// The part of a table that a rank has. Without columns it takes no part in sums.
struct EmbeddingPiece {
  std::uint64_t rows = 0, first_column = 0, columns = 0;
};

// The place of every row and column.
class EmbeddingLayout {
 public:
  // One rank has whole tables, however they were to be divided. Throws UsageError for a width of 0,
  // tables of 2^32 - 1 rows and more, owners that are no ranks, or too many ranks.
  EmbeddingLayout(std::vector<EmbeddingTable> tables, std::uint64_t width, int ranks);

  std::size_t tables() const { return tables_.size(); }
  const EmbeddingTable& table(std::size_t t) const { return tables_[t]; }
  std::uint64_t width() const { return width_; }
  int ranks() const { return ranks_; }
  EmbeddingPiece piece(std::size_t t, int rank) const;
  // Returns the place of the rows of a table of split `rows`; it has no bases.
  const StoredRows& places(std::size_t t) const { return places_[t]; }
  // Writes the ids of the rows first, first + 1, ... of a piece.
  void ids(std::size_t t, int rank, std::uint64_t first, std::span<std::uint64_t> out) const;

 private:
  std::vector<EmbeddingTable> tables_;
  std::uint64_t width_;
  int ranks_;
  std::vector<StoredRows> places_;  // by table
};

}  // namespace plait
