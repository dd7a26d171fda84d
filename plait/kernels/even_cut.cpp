#include "plait/kernels/even_cut.h"

#include <algorithm>

namespace plait {

EvenCutRows cut_rows_of(std::span<const EvenTile> tiles) {
  EvenCutRows found;
  std::uint32_t first = 0;  // tile of the row that is cut
  for (std::uint32_t tile = 1; tile + 1 < tiles.size(); ++tile) {
    if (!tiles[tile].cut()) continue;
    const std::uint32_t row = tiles[tile].row();
    if (!tiles[tile - 1].cut() || tiles[tile - 1].row() != row) first = tile - 1;
    if (tiles[tile + 1].row() != row)
      found.rows.push_back({row, 2 * first + 1, 2 * (tile - first)});
  }
  const auto hubs =
      std::stable_partition(found.rows.begin(), found.rows.end(),
                            [](const CutRow& row) { return row.count <= CutRow::kFew; });
  found.hubs = static_cast<std::uint32_t>(found.rows.end() - hubs);
  return found;
}

}  // namespace plait
