#include "plait/io/column_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace plait {
namespace {

enum class Column { unknown, source, target, weight, number };

// The names of a kind of column, between blanks. Single letters are left out: u, v and w stand for
// either end, and for weights. Names of the last kind number the edges.
constexpr std::string_view names_of(Column column) {
  switch (column) {
    case Column::source:
      return " source src from ";
    case Column::target:
      return " target tgt dst dest destination to ";
    case Column::weight:
      return " weight edgeweight ";
    case Column::number:
      return " id edge index idx row key ";
    default:
      return "";
  }
}

Column known_column(const std::string& word) {
  for (const Column column : {Column::source, Column::target, Column::weight, Column::number})
    if (names_of(column).find(fmt::format(" {} ", word)) != std::string_view::npos) return column;
  return Column::unknown;
}

Column column_of(const std::string& name) {
  std::string word;
  std::ranges::copy_if(name, std::back_inserter(word),
                       [](unsigned char c) { return std::isalnum(c) || c >= 0x80; });
  for (const std::string_view end : {"s", "id", "node", "vertex"})  // "FromNodeId", "sources"
    if (known_column(word) == Column::unknown && word.ends_with(end))
      word.erase(word.size() - end.size());
  return known_column(word);
}

bool is_end(Column column) { return column == Column::source || column == Column::target; }

// Where a column numbers the edges, the ends are two others. A file's names may be those of a first
// column `id` and of what it points to: then it is an end.
bool are_edges(const std::vector<Column>& columns) {
  const Column first = columns[0], second = columns[1];
  const auto others = columns.begin() + 2;
  const bool weighted = columns.size() == 3 && *others == Column::weight;
  if (first == Column::number && (second == Column::source || (columns.size() > 2 && !weighted)))
    return false;
  return first != Column::weight && second != Column::weight &&
         !(is_end(first) && first == second) && std::none_of(others, columns.end(), is_end);
}

}  // namespace

ColumnNames read_column_names(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::vector<Column> columns;
  std::ranges::transform(names, std::back_inserter(columns), column_of);
  if (!are_edges(columns)) return {.order = ColumnOrder::not_edges};
  const bool swapped = columns[0] == Column::target || columns[1] == Column::source;
  return {.order = swapped ? ColumnOrder::swapped : ColumnOrder::usual,
          .ends_alone = columns.size() == 2 && std::ranges::all_of(columns, is_end)};
}

}  // namespace plait
