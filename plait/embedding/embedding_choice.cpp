#include "plait/embedding/embedding_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

namespace plait {
namespace {

constexpr std::uint64_t kLeastColumns = 16;  // a cache line of floats

// Returns the expected number of ranks that have one of `ids` rows which fall upon ranks alike.
double owners_of_bag(double ids, int ranks) {
  const double r = ranks;
  return r * (1 - std::pow(1 - 1 / r, ids));
}

std::uint64_t bytes_of(double rows, std::uint64_t columns, DType type = DType::f32) {
  return static_cast<std::uint64_t>(rows * static_cast<double>(columns * size_of(type)));
}

// Gives each of these tables, which are sorted by ids and rows, to the rank that reads the fewest,
// or tables without ids to the one that holds the fewest rows of these. Returns whether no rank
// reads much more than the others; `shared` ids are read by all in equal parts.
bool give_owners(const EmbeddingQuestion& q, std::span<const std::size_t> whole, double shared,
                 std::vector<EmbeddingTable>& chosen) {
  constexpr double kMostOverMean = 1.1;
  const auto ranks = static_cast<std::size_t>(q.ranks);
  std::vector<double> load(ranks, shared / static_cast<double>(q.ranks));
  std::vector<std::uint64_t> held(ranks);
  for (const std::size_t t : whole) {
    const EmbeddingUse& use = q.tables[t];
    const std::ptrdiff_t least = use.ids > 0 ? std::ranges::min_element(load) - load.begin()
                                             : std::ranges::min_element(held) - held.begin();
    chosen[t].owner = static_cast<int>(least);
    load[static_cast<std::size_t>(least)] += use.ids;
    held[static_cast<std::size_t>(least)] += use.rows;
  }
  const double mean = std::accumulate(load.begin(), load.end(), 0.0) / static_cast<double>(q.ranks);
  return whole.empty() || std::ranges::max(load) <= kMostOverMean * mean;
}

}  // namespace

std::vector<EmbeddingTable> choose_splits(const EmbeddingQuestion& q) {
  std::vector<EmbeddingTable> chosen;
  std::uint64_t rows = 0;
  double ids = 0;
  for (const EmbeddingUse& use : q.tables) {
    chosen.push_back({.rows = use.rows});
    rows += use.rows;
    ids += use.ids;
  }
  if (q.ranks == 1) return chosen;
  const auto ranks = static_cast<std::uint64_t>(q.ranks);
  const EmbeddingSplit divided =
      q.width / ranks >= kLeastColumns ? EmbeddingSplit::columns : EmbeddingSplit::rows;
  std::vector<std::size_t> whole;
  double shared = 0;  // ids of a sample whose rows all ranks read in equal parts
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    const EmbeddingUse& use = q.tables[t];
    EmbeddingSplit& split = chosen[t].split;
    if (use.rows <= q.samples)
      split = EmbeddingSplit::replicated;
    else if (use.rows > (rows + ranks - 1) / ranks)
      split = EmbeddingSplit::rows;
    else if (use.ids * q.ranks > ids)
      split = divided;
    else
      whole.push_back(t);
    if (split != EmbeddingSplit::table) shared += use.ids;  // as many of each rank's samples
  }
  std::ranges::stable_sort(whole, std::greater{}, [&](std::size_t t) {
    return std::pair(q.tables[t].ids, q.tables[t].rows);
  });
  std::size_t first = 0;
  while (!give_owners(q, std::span(whole).subspan(first), shared, chosen)) {
    chosen[whole[first]].split = divided;
    shared += q.tables[whole[first++]].ids;
  }
  return chosen;
}

std::vector<EmbeddingCost> embedding_costs(const EmbeddingQuestion& q,
                                           const std::vector<EmbeddingTable>& tables) {
  const EmbeddingLayout layout(tables, q.width, q.ranks);
  std::vector<EmbeddingCost> costs(static_cast<std::size_t>(q.ranks));
  const auto samples = static_cast<double>(q.samples);
  for (std::size_t t = 0; t < tables.size(); ++t)
    for (int rank = 0; rank < q.ranks; ++rank) {
      const EmbeddingPiece piece = layout.piece(t, rank);
      if (piece.columns == 0) continue;
      const double ids = q.tables[t].ids, all = samples * q.ranks, others = all - samples;
      EmbeddingCost& cost = costs[static_cast<std::size_t>(rank)];
      cost.memory += bytes_of(static_cast<double>(piece.rows), piece.columns, q.type);
      switch (tables[t].split) {
        case EmbeddingSplit::replicated:
          cost.read += bytes_of(samples * ids, piece.columns, q.type);
          break;
        case EmbeddingSplit::rows:
          cost.read += bytes_of(all * ids / q.ranks, piece.columns, q.type);
          cost.sent += bytes_of(others * owners_of_bag(ids, q.ranks) / q.ranks, piece.columns);
          break;
        default:
          cost.read += bytes_of(all * ids, piece.columns, q.type);
          cost.sent += bytes_of(others, piece.columns);
      }
    }
  return costs;
}

}  // namespace plait
