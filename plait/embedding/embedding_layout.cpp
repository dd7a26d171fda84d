#include "plait/embedding/embedding_layout.h"

#include <numeric>

#include "plait/base/error.h"
#include "plait/base/ids.h"
#include "plait/base/names.h"
#include "plait/table/table_layout.h"

namespace plait {
namespace {

constexpr Names<EmbeddingSplit, 4> kSplits{"split", {"replicated", "table", "columns", "rows"}};

TableLayout dealt(std::uint64_t rows, int ranks) {
  return TableLayout({.rows = rows, .width = 1, .division = TableDivision::hash}, ranks);
}

// Returns the columns that are not divided: a cache line of floats, or fewer if ranks would get
// none.
std::uint64_t unit_of(std::uint64_t width, std::uint64_t ranks) {
  for (const std::uint64_t unit : {16u, 8u, 4u})
    if (width % unit == 0 && width / unit >= ranks) return unit;
  return 1;
}

}  // namespace

EmbeddingLayout::EmbeddingLayout(std::vector<EmbeddingTable> tables, std::uint64_t width, int ranks)
    : tables_(std::move(tables)), width_(width), ranks_(ranks), places_(tables_.size()) {
  require<UsageError>(width > 0, "embedding tables need a width of at least 1");
  require<UsageError>(ranks >= 1 && ranks <= kMostStoreRanks,
                      "embedding tables were asked for over {} ranks; use 1 to {}", ranks,
                      kMostStoreRanks);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    EmbeddingTable& table = tables_[t];
    require<UsageError>(table.rows < kMaxVertices32,
                        "embedding table {} has {} rows; at most {} are supported", t, table.rows,
                        kMaxVertices32 - 1);
    require<UsageError>(table.owner >= 0 && table.owner < ranks,
                        "embedding table {} belongs to rank {}, but there are {}", t, table.owner,
                        ranks);
    if (ranks == 1) table.split = EmbeddingSplit::table;
    if (table.split == EmbeddingSplit::rows) places_[t] = dealt(table.rows, ranks).view();
  }
}

EmbeddingPiece EmbeddingLayout::piece(std::size_t t, int rank) const {
  const EmbeddingTable& table = tables_[t];
  EmbeddingPiece piece{.rows = table.rows, .columns = width_};
  switch (table.split) {
    case EmbeddingSplit::replicated:
      break;
    case EmbeddingSplit::table:
      if (rank != table.owner) return {};
      break;
    case EmbeddingSplit::columns: {
      const auto ranks = static_cast<std::uint64_t>(ranks_), r = static_cast<std::uint64_t>(rank);
      const std::uint64_t unit = unit_of(width_, ranks), units = width_ / unit;
      piece.first_column = units * r / ranks * unit;
      piece.columns = units * (r + 1) / ranks * unit - piece.first_column;
      break;
    }
    case EmbeddingSplit::rows:
      piece.rows = dealt(table.rows, ranks_).size(rank);
      break;
  }
  return piece;
}

void EmbeddingLayout::ids(std::size_t t, int rank, std::uint64_t first,
                          std::span<std::uint64_t> out) const {
  if (tables_[t].split == EmbeddingSplit::rows)
    dealt(tables_[t].rows, ranks_).ids(rank, first, out);
  else
    std::iota(out.begin(), out.end(), first);
}

EmbeddingSplit parse_embedding_split(std::string_view name) { return kSplits.parse(name); }
std::string_view to_string(EmbeddingSplit split) { return kSplits.of(split); }

}  // namespace plait
