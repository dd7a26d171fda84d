// The steps backward of embedding tables on the CPU.
#include <algorithm>
#include <utility>

#include "plait/base/data_or_null.h"
#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/base/parallel.h"
#include "plait/base/raw_vector.h"
#include "plait/embedding/bag_maxima.h"
#include "plait/embedding/cpu/cpu_embeddings.h"
#include "plait/embedding/id_weights.h"
#include "plait/kernels/spmm.h"

namespace plait {
namespace {

constexpr std::size_t kCopyGrain = 64;  // samples

// The rows of gradients of several ranks, as numbers that edges name.
struct PeerRows {
  std::vector<const float*> base;    // by rank
  std::vector<const float*> places;  // by rank, in mode max: rows of places (RowSource::row_of())
  std::vector<Slot> first;           // by rank: the number of its first row
  std::vector<std::uint32_t> owner, row;

  void add(const float* rows, std::uint64_t count) {
    first.push_back(static_cast<Slot>(row.size()));
    owner.insert(owner.end(), count, static_cast<std::uint32_t>(base.size()));
    for (std::uint64_t k = 0; k < count; ++k) row.push_back(static_cast<std::uint32_t>(k));
    base.push_back(rows);
  }
  RowSource source(std::uint64_t stride, bool of_places = false) const {
    return {.stride = stride,
            .peers = of_places ? places.data() : base.data(),
            .halo_owner = owner.data(),
            .halo_row = row.data()};
  }
};

// Rows of places as a RowSource has them.
const float* as_rows(const Slot* places) { return reinterpret_cast<const float*>(places); }

// A sum of rows of gradients.
struct SumOfRows {
  RowSource x;
  Frequency frequency = Frequency::ignored;
  RowSource places = {};  // of maxima, if edges have places
};

SummedRows sum_by_row(GradientEdges edges, const EmbeddingPiece& piece, const SumOfRows& of,
                      const Embeddings::Room& room) {
  EdgesByRow sorted = by_row(std::move(edges), piece.rows);
  SummedRows sums;
  if (sorted.rows.empty()) return sums;
  const std::size_t count = sorted.rows.size() * piece.columns;
  sums.values = {static_cast<float*>(room(count * sizeof(float))), count};
  if (of.frequency != Frequency::ignored) sums.ids = sorted.ids_by_row();
  std::vector<float> scale;
  if (of.frequency == Frequency::divided)
    for (const Slot ids : sums.ids) scale.push_back(1.0f / static_cast<float>(ids));
  const SpmmArgs args{.begin = offsets_from(sorted.offsets, 0),
                      .end = offsets_from(sorted.offsets, 1),
                      .columns = sorted.from.data(),
                      .weights = data_or_null(sorted.weights),
                      .x = of.x,
                      .width = piece.columns,
                      .y = sums.values.data(),
                      .y_stride = piece.columns,
                      .row_scale = data_or_null(scale)};
  sorted.places.empty() ? spmm(args) : sum_maxima(args, sorted.places.data(), of.places);
  sums.rows = std::move(sorted.rows);
  return sums;
}

// Returns the sums with the numbers of their rows in the caller's memory.
RowGradients with_rows(const SummedRows& sums, const Embeddings::Room& room) {
  const std::size_t count = sums.rows.size();
  if (count == 0) return {};
  auto* const rows = static_cast<std::int64_t*>(room(count * sizeof(std::int64_t)));
  std::ranges::copy(sums.rows, rows);
  return {rows, sums.values.data(), count};
}

}  // namespace

std::vector<RowGradients> CpuEmbeddings::run_backward(const GivenBags& bags, std::uint64_t number,
                                                      const BagGradients& g, const Room& room,
                                                      void*) {
  begin({.step = EmbeddingStep::backward,
         .number = number,
         .wants = g.weights != nullptr,
         .lacks_pieces = g.pieces.at.empty()},
        bags);
  const bool alone = world_.size() == 1;
  const EmbeddingPart mine = part(world_.rank());
  const std::uint64_t stride = layout_.tables() * layout_.width();
  if (!alone)
    parallel_blocks(mine.sizes->per_table, kCopyGrain, [&](std::size_t begin, std::size_t end) {
      const std::uint64_t at = begin * stride, count = (end - begin) * stride;
      std::copy_n(g.sums + at, count, mine.rows + at);
      if (rules_.max()) std::copy_n(g.places + at, count, mine.places + at);
    });
  fault_point();
  heap_->barrier();
  fault_point();
  std::vector<RowGradients> gradients(layout_.tables());
  std::vector<std::size_t> shared;  // replicated tables
  std::uint64_t offered = 0;
  for (std::size_t t = 0; t < layout_.tables(); ++t) {
    if (layout_.table(t).split != EmbeddingSplit::replicated) {
      gradients[t] = with_rows(gradients_of(t, g, room), room);
      continue;
    }
    RawVector<std::byte> memory;
    const auto for_now = [&](std::uint64_t bytes) {
      memory = RawVector<std::byte>(bytes);
      return memory.data();
    };
    offered = offer(t, gradients_of(t, g, for_now), offered);
    shared.push_back(t);
  }
  const bool products = multiply_for_readers(g);
  fault_point();
  if (products || !shared.empty()) heap_->barrier();
  fault_point();
  for (const std::size_t t : shared) gradients[t] = with_rows(join(t, room), room);
  if (g.weights != nullptr) collect_weights(bags, g.weights);
  step_.end();
  return gradients;
}

// Writes products of rows of this rank and gradients of bags for ranks that want them. Returns
// whether any does.
bool CpuEmbeddings::multiply_for_readers(const BagGradients& g) const {
  bool wanted = false;
  for (int reader = 0; reader < world_.size(); ++reader) {
    const EmbeddingPart of = part(reader);
    if (of.sizes->shares == 0) continue;
    wanted = true;
    const bool own = reader == world_.rank();
    const float* const gradients = own ? g.sums : of.rows;
    for (std::size_t t = 0; of.sizes->per_table > 0 && t < layout_.tables(); ++t) {
      const EmbeddingPiece piece = layout_.piece(t, world_.rank());
      const EmbeddingSplit split = layout_.table(t).split;
      if (split == EmbeddingSplit::replicated && !own) continue;
      const std::uint64_t shares = shares_of(layout_, t);
      if (piece.columns == 0 && shares == 1) continue;
      const auto share = shares > 1 ? static_cast<std::uint64_t>(world_.rank()) : 0;
      multiply_rows({.bags = of.bags(),
                     .t = t,
                     .piece = g.pieces.rows(t, piece.columns),
                     .places = split == EmbeddingSplit::rows ? &layout_.places(t) : nullptr,
                     .rank = world_.rank(),
                     .gradients = gradients + t * layout_.width() + piece.first_column,
                     .stride = layout_.tables() * layout_.width(),
                     .out = of.products + share * of.sizes->ids});
    }
  }
  return wanted;
}

void CpuEmbeddings::collect_weights(const GivenBags& bags, float* out) const {
  const EmbeddingPart mine = part(world_.rank());
  std::vector<std::uint64_t> shares;
  for (std::size_t t = 0; t < layout_.tables(); ++t) shares.push_back(shares_of(layout_, t));
  collect_products({.given = bags,
                    .tables = tables_,
                    .bags = mine.bags(),
                    .products = mine.products,
                    .size = mine.sizes->ids,
                    .shares = std::move(shares)},
                   out);
}

SummedRows CpuEmbeddings::gradients_of(std::size_t t, const BagGradients& g,
                                       const Room& room) const {
  const bool mean = rules_.mean();
  const EmbeddingPiece piece = layout_.piece(t, world_.rank());
  if (piece.rows == 0 || piece.columns == 0) return {};
  const std::uint64_t stride = layout_.tables() * layout_.width();
  const std::uint64_t column = t * layout_.width() + piece.first_column;
  const EmbeddingSplit split = layout_.table(t).split;
  GradientEdges edges;
  edges.placed = rules_.max();
  const bool alone = world_.size() == 1;
  if (alone || split == EmbeddingSplit::replicated) {
    const Bags bags = part(world_.rank()).bags();
    edges.weighted = mean || bags.weights != nullptr;
    add_edges(t, world_.rank(), 0, edges);
    const bool empty = bags.per_table == 0;
    const float* const base = empty ? nullptr : g.sums + column;
    const float* const places = empty || !rules_.max() ? nullptr : as_rows(g.places + column);
    const bool counts = rules_.by_frequency && !alone;  // join() divides
    const Frequency here = counts ? Frequency::counted : rules_.frequency();
    return sum_by_row(std::move(edges), piece,
                      {.x = {.base = base, .stride = stride},
                       .frequency = here,
                       .places = {.base = places, .stride = stride}},
                      room);
  }
  PeerRows readers;
  for (int reader = 0; reader < world_.size(); ++reader) {
    const EmbeddingPart of = part(reader);
    edges.weighted = edges.weighted || mean || of.sizes->weighted;
    readers.add(of.rows + column, of.sizes->per_table);
    readers.places.push_back(rules_.max() ? as_rows(of.places + column) : nullptr);
  }
  for (int reader = 0; reader < world_.size(); ++reader)
    add_edges(t, reader, readers.first[static_cast<std::size_t>(reader)], edges);
  return sum_by_row(std::move(edges), piece,
                    {.x = readers.source(stride),
                     .frequency = rules_.frequency(),
                     .places = readers.source(stride, true)},
                    room);
}

// Shows this rank's gradient of a replicated table to the others, from row `start` on. Returns the
// row behind it.
std::uint64_t CpuEmbeddings::offer(std::size_t t, const SummedRows& mine, std::uint64_t start) {
  const EmbeddingPart to = part(world_.rank());
  std::uint64_t* const starts = to.starts + t * (static_cast<std::size_t>(layout_.ranks()) + 1);
  starts[0] = start;
  starts[1] = start + mine.rows.size();
  std::ranges::copy(mine.rows, to.extra_ids + start);
  std::ranges::copy(mine.ids, to.extra_counts + start);
  std::ranges::copy(mine.values, to.extra + start * layout_.width());
  return starts[1];
}

// Returns the sum of the gradients of a replicated table that all ranks show.
SummedRows CpuEmbeddings::join(std::size_t t, const Room& room) const {
  const std::uint64_t width = layout_.width();
  GradientEdges edges;
  PeerRows ranks;
  for (int rank = 0; rank < world_.size(); ++rank) {
    const EmbeddingPart of = part(rank);
    const std::uint64_t* const starts =
        of.starts + t * (static_cast<std::size_t>(layout_.ranks()) + 1);
    ranks.add(of.extra + starts[0] * width, starts[1] - starts[0]);
    for (std::uint64_t k = starts[0]; k < starts[1]; ++k) {
      edges.from.push_back(static_cast<Slot>(edges.rows.size()));
      edges.rows.push_back(of.extra_ids[k]);
      if (rules_.by_frequency) edges.counts.push_back(of.extra_counts[k]);
    }
  }
  return sum_by_row(std::move(edges), layout_.piece(t, world_.rank()),
                    {.x = ranks.source(width), .frequency = rules_.frequency()}, room);
}

}  // namespace plait
