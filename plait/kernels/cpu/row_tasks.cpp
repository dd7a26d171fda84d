#include "plait/kernels/cpu/row_tasks.h"

#include <algorithm>

#include "plait/base/error.h"

namespace plait {
namespace {

constexpr EdgeOffset kTaskEdges = 1 << 13;
constexpr EdgeOffset kRowCost = 4;             // the cost of a row beside its edges, in edges
constexpr std::uint64_t kBlockRows = 1 << 13;  // rows that one thread cuts into tasks at a time

RowTasks cut_block(std::span<const EdgeOffset> begins, std::span<const EdgeOffset> ends,
                   RowRange rows) {
  RowTasks cut;
  EdgeOffset work = 0;
  for (std::uint64_t i = rows.begin; i < rows.end; ++i) {
    const EdgeOffset begin = begins[i], end = ends[i];
    work += kRowCost;
    if (end - begin <= kPieceEdges) {
      work += end - begin;
    } else {
      for (EdgeOffset e = begin; e < end; e += std::min(kPieceEdges, end - e))
        cut.pieces.push_back({i, e, std::min(e + kPieceEdges, end)});
    }
    if (work >= kTaskEdges || i + 1 == rows.end) {
      cut.tasks.push_back({rows.begin, i + 1});
      rows.begin = i + 1;
      work = 0;
    }
  }
  return cut;
}

}  // namespace

RowTasks cut_rows(std::span<const EdgeOffset> begin, std::span<const EdgeOffset> end) {
  const std::uint64_t rows = begin.size();
  require(rows == end.size(), "{} row begins, but {} row ends", rows, end.size());
  std::vector<RowTasks> blocks((rows + kBlockRows - 1) / kBlockRows);
  parallel_for(blocks.size(), [&](std::size_t b) {
    blocks[b] = cut_block(begin, end, {b * kBlockRows, std::min((b + 1) * kBlockRows, rows)});
  });
  RowTasks cut;
  for (const RowTasks& block : blocks) {
    cut.tasks.insert(cut.tasks.end(), block.tasks.begin(), block.tasks.end());
    cut.pieces.insert(cut.pieces.end(), block.pieces.begin(), block.pieces.end());
  }
  return cut;
}

}  // namespace plait
