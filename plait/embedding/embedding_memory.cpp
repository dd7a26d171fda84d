#include "plait/embedding/embedding_memory.h"

#include <algorithm>
#include <cmath>

#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/embedding/embedding_part.h"

namespace plait {
namespace {

// Bytes that the sorting of edges by row takes per edge at the most (bag_edges.cpp; on a GPU
// cuda/named_rows.cu: 12 of edges, 12 of sorted ones, 8 of their order and 8 of the sort's own,
// then, instead of all these but the sorted ones, 32 of rows and their neighbour groups). The same
// is enough for the join of replicated tables (GpuGradients::join), whose edges have no weights.
constexpr std::uint64_t kSortedOnCpu = 28, kSortedOnGpu = 44;

// Returns by table the ids of a rank's step.
std::vector<std::uint64_t> ids_of_rank(const EmbeddingQuestion& use) {
  std::vector<std::uint64_t> ids;
  for (const EmbeddingUse& table : use.tables)
    ids.push_back(whole_bytes(std::ceil(table.ids * static_cast<double>(use.samples))));
  return ids;
}

// Returns the bytes of a rank's part of the heap, which is made a quarter larger than needed.
std::uint64_t heap_bytes(const EmbeddingMemory& m, const EmbeddingLayout& layout,
                         const std::vector<std::uint64_t>& ids) {
  const auto ranks = static_cast<std::uint64_t>(layout.ranks());
  Bytes all = Bytes(m.use.samples) * m.tables.size() * m.use.width * ranks;
  for (const std::uint64_t of_table : ids) all = all + Bytes(of_table) * m.use.width;
  if (all.value >> 56 != 0) return ~std::uint64_t{0};  // sums below would overflow
  EmbeddingSizes sizes{.per_table = m.use.samples, .extra = extra_rows(layout, m.use.samples, ids)};
  for (const std::uint64_t of_table : ids) sizes.ids += of_table;
  // A GPU has room for a sum of each owner, also if it sends none, and for gradients of as many
  // rows of replicated tables as the ids of all tables may name.
  std::uint64_t parts = 0, shared = 0;
  for (std::size_t t = 0; m.gpus && ranks > 1 && t < layout.tables(); ++t) {
    if (layout.table(t).split == EmbeddingSplit::rows) parts += ranks * m.use.samples;
    if (layout.table(t).split == EmbeddingSplit::replicated) shared += layout.table(t).rows;
  }
  sizes.extra = std::max({sizes.extra, parts, std::min(shared, sizes.ids)});
  const std::uint64_t bytes = EmbeddingPart(nullptr, sizes, layout).bytes;
  return bytes + bytes / 4;
}

// Returns the most edges that a rank sorts at once for a table, if it has `rows` of its rows and
// each rank has `ids` ids. The sums of a replicated table, one per row that a rank's ids name, are
// sorted again with the sums of all ranks when these are joined; the memory of the first sort is
// then free.
std::uint64_t sorted_edges(bool replicated, std::uint64_t ids, std::uint64_t rows,
                           std::uint64_t ranks) {
  if (!replicated) return (Bytes(ids) * ranks).value;
  return std::max(ids, (Bytes(std::min(rows, ids)) * ranks).value);
}

}  // namespace

MemoryPlan plan_embeddings(const EmbeddingMemory& m) {
  const EmbeddingLayout layout(m.tables, m.use.width, m.use.ranks);
  const std::vector<std::uint64_t> ids = ids_of_rank(m.use);
  const auto ranks = static_cast<std::size_t>(m.use.ranks);
  const std::vector<std::uint64_t> none(ranks);
  MemoryItem rows{"rows", none}, states{"states of the optimiser", none};
  MemoryItem heap{"ids and sums of a step", std::vector(ranks, heap_bytes(m, layout, ids))};
  MemoryItem sorted{"ids of a step, sorted by row", none}, gradients{"gradients of a step", none};
  MemoryItem gathered{"gradients of bags, brought together", none};
  const bool narrow = m.use.type != DType::f32;
  for (std::size_t t = 0; t < layout.tables(); ++t)
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const EmbeddingPiece piece = layout.piece(t, static_cast<int>(rank));
      if (piece.columns == 0) continue;
      const auto add = [rank](MemoryItem& item, Bytes bytes) {
        item.bytes[rank] = (Bytes(item.bytes[rank]) + bytes).value;
      };
      const bool own = layout.table(t).split == EmbeddingSplit::replicated;
      const std::uint64_t named = (Bytes(ids[t]) * ranks).value;
      const Bytes of_row = Bytes(piece.columns) * sizeof(float);
      add(rows, Bytes(piece.rows) * piece.columns * size_of(m.use.type));
      add(states, Bytes(piece.rows) * of_row * states_of(m.rule));
      add(sorted, Bytes(sorted_edges(own, ids[t], piece.rows, ranks)) *
                      (m.gpus ? kSortedOnGpu : kSortedOnCpu));
      if (m.gpus && ranks > 1)  // the join of a replicated table brings the sums of its rows
        add(gathered, Bytes(own ? std::min(piece.rows, ids[t]) : m.use.samples) * ranks * of_row);
      // A narrow gradient is rounded from one of floats.
      add(gradients, Bytes(std::min(piece.rows, named)) *
                         (of_row + sizeof(std::int64_t) +
                          Bytes(narrow ? piece.columns : 0) * size_of(m.use.type)));
    }
  return {{rows, states, heap, sorted, gathered, gradients}};
}

}  // namespace plait
