#include "plait/embedding/row_numbers.h"

#include <map>
#include <utility>

#include "plait/base/error.h"

namespace plait {
namespace {

// The tables of a group, by whether they are divided, and their columns.
using Groups = std::map<std::pair<bool, std::uint64_t>, std::vector<std::size_t>>;

Groups groups_of(const EmbeddingLayout& layout, int rank) {
  Groups groups;
  for (std::size_t t = 0; t < layout.tables(); ++t) {
    const std::uint64_t columns = layout.piece(t, rank).columns;
    const bool replicated = layout.table(t).split == EmbeddingSplit::replicated;
    if (columns > 0) groups[{!replicated, columns}].push_back(t);
  }
  return groups;
}

std::uint64_t rows_of(const EmbeddingLayout& layout, int rank,
                      const std::vector<std::size_t>& tables) {
  std::uint64_t rows = 0;
  for (const std::size_t t : tables) rows += layout.piece(t, rank).rows;
  return rows;
}

}  // namespace

RowNumbers number_rows(const EmbeddingLayout& layout, int rank, std::vector<std::size_t> tables,
                       std::uint64_t most) {
  const std::uint64_t rows = rows_of(layout, rank, tables);
  require<UsageError>(rows < most, "{} rows of embedding tables are too many for one rank", rows);
  RowNumbers numbers{.tables = std::move(tables), .bases = {0}, .groups = {}};
  for (const std::size_t t : numbers.tables)
    numbers.bases.push_back(numbers.bases.back() + static_cast<Slot>(layout.piece(t, rank).rows));
  return numbers;
}

std::vector<RowNumbers> number_rows(const EmbeddingLayout& layout, int rank, std::uint64_t most) {
  std::vector<RowNumbers> all;
  std::vector<std::size_t> tables;
  std::vector<TableGroup> groups;
  std::uint64_t rows = 0;
  const auto end_numbering = [&] {
    if (tables.empty()) return;
    all.push_back(number_rows(layout, rank, std::exchange(tables, {}), most));
    all.back().groups = std::exchange(groups, {});
    rows = 0;
  };
  for (const auto& [kind, of_group] : groups_of(layout, rank)) {
    const std::uint64_t more = rows_of(layout, rank, of_group);
    if (rows + more >= most) end_numbering();
    rows += more;
    groups.push_back({.first = tables.size(),
                      .end = tables.size() + of_group.size(),
                      .columns = kind.second,
                      .replicated = !kind.first});
    tables.insert(tables.end(), of_group.begin(), of_group.end());
  }
  end_numbering();
  return all;
}

}  // namespace plait
