#include "plait/store/sharded/embeddings.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plait/base/data_or_null.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/kernels/spmm.h"
#include "plait/store/bag_edges.h"
#include "plait/store/bag_maxima.h"
#include "plait/store/id_weights.h"
#include "plait/store/sharded/embedding_part.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

constexpr std::size_t kCopyGrain = 64;  // samples

std::span<const EdgeOffset> from(const std::vector<EdgeOffset>& offsets, std::size_t first) {
  return std::span(offsets).subspan(first, offsets.size() - 1);
}

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

// `places`: of maxima, if edges have places.
RowGradients sum_by_row(GradientEdges edges, const EmbeddingPiece& piece, const RowSource& x,
                        Frequency frequency, const RowSource& places = {}) {
  EdgesByRow sorted = by_row(std::move(edges), piece.rows);
  RowGradients sums{.values = RawVector<float>(sorted.rows.size() * piece.columns)};
  if (sorted.rows.empty()) return sums;
  if (frequency != Frequency::ignored) sums.ids = sorted.ids_by_row();
  std::vector<float> scale;
  if (frequency == Frequency::divided)
    for (const Slot ids : sums.ids) scale.push_back(1.0f / static_cast<float>(ids));
  const SpmmArgs args{.begin = from(sorted.offsets, 0),
                      .end = from(sorted.offsets, 1),
                      .columns = sorted.from.data(),
                      .weights = data_or_null(sorted.weights),
                      .x = x,
                      .width = piece.columns,
                      .y = sums.values.data(),
                      .y_stride = piece.columns,
                      .row_scale = data_or_null(scale)};
  sorted.places.empty() ? spmm(args) : sum_maxima(args, sorted.places.data(), places);
  sums.rows = std::move(sorted.rows);
  return sums;
}

}  // namespace

Embeddings::Embeddings(World& world, EmbeddingLayout layout, const EmbeddingRules& rules)
    : world_(world), layout_(std::move(layout)), rules_(rules), sent_(layout_.tables()) {
  require<UsageError>(layout_.tables() > 0 && layout_.tables() == rules.padding.size(),
                      "{} embedding tables have {} ids of padding", layout_.tables(),
                      rules.padding.size());
  tables_.padding = rules.padding;
  for (std::size_t t = 0; t < layout_.tables(); ++t) tables_.rows.push_back(layout_.table(t).rows);
  heap_ = SymmetricHeap::create(world, EmbeddingPart(nullptr, {}, layout_).bytes);
}

Embeddings::~Embeddings() = default;

EmbeddingPart Embeddings::part(int rank) const {
  std::byte* const first = heap_->part(rank).data();
  EmbeddingSizes sizes;
  std::memcpy(&sizes, first, sizeof(sizes));
  return {first, sizes, layout_};
}

// Collective. Ranks meet, so that none reads any more what the last step left; then this rank's
// bags are in its part. `products`: owners write products of rows there.
void Embeddings::begin(const EmbeddingStepOf& step, const GivenBags& bags, bool products) {
  require(heap_ != nullptr, "the memory of the embedding tables is lost; end the program");
  step_.require_ended();
  EmbeddingStepOf mine = step;
  EmbeddingSizes sizes;
  mine.failure = failure_of([&] {
    check_bags(bags, tables_);
    require_room_for_numbers(bags, layout_.ranks());
    sizes = embedding_sizes(bags, layout_, products);
    sizes.max = rules_.max();
    mine.bytes = EmbeddingPart(nullptr, sizes, layout_).bytes;
  });
  const std::uint64_t most = begin_embedding_step(world_, *heap_, mine);
  if (most > heap_->bytes()) {
    published_ = 0;
    SymmetricHeap::replace(world_, heap_, most + most / 4);
  }
  step_.begin();
  const EmbeddingPart place(heap_->part(world_.rank()).data(), sizes, layout_);
  *place.sizes = sizes;
  if (std::exchange(published_, step.number) == step.number) return;
  publish(bags);
}

void Embeddings::publish(const GivenBags& given) {
  const EmbeddingPart mine = part(world_.rank());
  const Bags bags = write_bags(given, tables_, {mine.offsets, mine.ids, mine.weights});
  std::uint64_t sums = 0;
  const std::size_t stride = static_cast<std::size_t>(layout_.ranks()) + 1;
  for (std::size_t t = 0; t < layout_.tables(); ++t) {
    if (layout_.table(t).split != EmbeddingSplit::rows) continue;
    sent_[t] = bags_by_owner(bags, t, layout_.places(t));
    for (std::size_t owner = 0; owner < sent_[t].size(); ++owner) {
      mine.starts[t * stride + owner] = sums;
      sums += sent_[t][owner].size();
    }
  }
}

std::uint64_t Embeddings::forward(const GivenBags& bags, std::span<const float* const> pieces,
                                  const BagResults& out) {
  begin({.step = EmbeddingStep::forward, .number = number_ + 1}, bags, false);
  ++number_;
  heap_->barrier();
  for (int k = 0; k < world_.size(); ++k) {  // others first, who wait
    const int reader = (world_.rank() + 1 + k) % world_.size();
    for (std::size_t t = 0; t < layout_.tables(); ++t)
      if (layout_.table(t).split != EmbeddingSplit::replicated || reader == world_.rank())
        sum_for({reader, t}, pieces[t], out);
  }
  heap_->barrier();
  collect(out);
  step_.end();
  return number_;
}

void Embeddings::sum_for(const Sum& sum, const float* rows, const BagResults& out) {
  const auto [reader, t] = sum;
  const EmbeddingPiece piece = layout_.piece(t, world_.rank());
  if (piece.columns == 0) return;
  if (layout_.table(t).split == EmbeddingSplit::rows) return sum_owned(sum, rows);
  const EmbeddingPart to = part(reader);
  const Bags bags = to.bags();
  if (bags.per_table == 0) return;
  const std::uint64_t first = t * bags.per_table, stride = layout_.tables() * layout_.width();
  std::vector<float> scale(rules_.mean() ? bags.per_table : 0);
  for (std::uint64_t b = 0; b < scale.size(); ++b) {
    const EdgeOffset ids = bags.offsets[first + b + 1] - bags.offsets[first + b];
    scale[b] = 1.0f / static_cast<float>(std::max<EdgeOffset>(ids, 1));
  }
  const bool own = reader == world_.rank();
  const std::uint64_t column = t * layout_.width() + piece.first_column;
  const SpmmArgs args{.begin = {bags.offsets + first, bags.per_table},
                      .end = {bags.offsets + first + 1, bags.per_table},
                      .columns = bags.ids,
                      .weights = bags.weights,
                      .x = {.base = rows, .stride = piece.columns},
                      .width = piece.columns,
                      .y = (own ? out.sums : to.rows) + column,
                      .y_stride = stride,
                      .row_scale = data_or_null(scale)};
  if (rules_.max())
    take_maxima(args, nullptr, (own ? out.places : to.places) + column);
  else
    spmm(args);
}

void Embeddings::sum_owned(const Sum& sum, const float* rows) {
  const auto [reader, t] = sum;
  const EmbeddingPart to = part(reader);
  const OwnedBags owned = owned_bags(to.bags(), t, layout_.places(t), world_.rank(), rules_.mean());
  const std::size_t start = t * (static_cast<std::size_t>(layout_.ranks()) + 1);
  const std::uint64_t at =
      to.starts[start + static_cast<std::size_t>(world_.rank())] * layout_.width();
  const SpmmArgs args{.begin = from(owned.offsets, 0),
                      .end = from(owned.offsets, 1),
                      .columns = owned.rows.data(),
                      .weights = data_or_null(owned.weights),
                      .x = {.base = rows, .stride = layout_.width()},
                      .width = layout_.width(),
                      .y = to.extra + at,
                      .y_stride = layout_.width(),
                      .row_scale = data_or_null(owned.scale)};
  rules_.max() ? take_maxima(args, owned.places.data(), to.extra_places + at) : spmm(args);
}

// Takes the sums of this rank's bags that others have written, and adds those by owners of rows.
void Embeddings::collect(const BagResults& out) const {
  const std::uint64_t width = layout_.width(), stride = layout_.tables() * width;
  const EmbeddingPart mine = part(world_.rank());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;  // the first float and their number
  for (std::size_t t = 0; t < layout_.tables(); ++t) {
    const EmbeddingSplit split = layout_.table(t).split;
    if (split == EmbeddingSplit::rows) collect_owned(t, out);
    if (split != EmbeddingSplit::table && split != EmbeddingSplit::columns) continue;
    for (int rank = 0; rank < layout_.ranks(); ++rank)
      if (const EmbeddingPiece piece = layout_.piece(t, rank);
          rank != world_.rank() && piece.columns > 0)
        runs.emplace_back(t * width + piece.first_column, piece.columns);
  }
  if (runs.empty()) return;
  parallel_blocks(mine.sizes->per_table, kCopyGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b)
      for (const auto& [first, count] : runs) {
        const std::uint64_t at = b * stride + first;
        std::copy_n(mine.rows + at, count, out.sums + at);
        if (rules_.max()) std::copy_n(mine.places + at, count, out.places + at);
      }
  });
}

void Embeddings::collect_owned(std::size_t t, const BagResults& out) const {
  const std::uint64_t width = layout_.width(), stride = layout_.tables() * width;
  const EmbeddingPart mine = part(world_.rank());
  const auto row_of = [&](auto* of_bags, std::uint64_t bag) {
    return of_bags + bag * stride + t * width;
  };
  for (std::uint64_t b = 0; b < mine.sizes->per_table; ++b) {
    std::fill_n(row_of(out.sums, b), width, 0.0f);
    if (rules_.max()) std::fill_n(row_of(out.places, b), width, kNoPlace);
  }
  const std::size_t start = t * (static_cast<std::size_t>(layout_.ranks()) + 1);
  for (std::size_t owner = 0; owner < sent_[t].size(); ++owner) {
    const std::vector<Slot>& bags = sent_[t][owner];
    const std::uint64_t first = mine.starts[start + owner] * width;
    const float* const sums = mine.extra + first;
    parallel_blocks(bags.size(), kCopyGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        float* const row = row_of(out.sums, bags[k]);
        Slot* const places = rules_.max() ? row_of(out.places, bags[k]) : nullptr;
        for (std::uint64_t c = 0; c < width; ++c) {
          if (places == nullptr) {
            row[c] += sums[k * width + c];
            continue;
          }
          Placed most{row[c], places[c]};
          most.take({sums[k * width + c], mine.extra_places[first + k * width + c]});
          row[c] = most.value;
          places[c] = most.place;
        }
      }
    });
  }
}

std::vector<RowGradients> Embeddings::backward(const GivenBags& bags, std::uint64_t number,
                                               const BagGradients& g) {
  begin({.step = EmbeddingStep::backward, .number = number}, bags, g.weights != nullptr);
  const bool alone = world_.size() == 1;
  const EmbeddingPart mine = part(world_.rank());
  const std::uint64_t stride = layout_.tables() * layout_.width();
  if (!alone)
    parallel_blocks(mine.sizes->per_table, kCopyGrain, [&](std::size_t begin, std::size_t end) {
      const std::uint64_t at = begin * stride, count = (end - begin) * stride;
      std::copy_n(g.sums + at, count, mine.rows + at);
      if (rules_.max()) std::copy_n(g.places + at, count, mine.places + at);
    });
  heap_->barrier();
  std::vector<RowGradients> gradients;
  std::vector<std::size_t> shared;  // replicated tables
  std::uint64_t offered = 0;
  for (std::size_t t = 0; t < layout_.tables(); ++t) {
    gradients.push_back(gradients_of(t, g));
    if (layout_.table(t).split != EmbeddingSplit::replicated) continue;
    offered = offer(t, gradients.back(), offered);
    shared.push_back(t);
  }
  const bool products = multiply_for_readers(g);
  if (products || !shared.empty()) heap_->barrier();
  for (const std::size_t t : shared) gradients[t] = join(t);
  if (g.weights != nullptr) collect_weights(bags, g.weights);
  step_.end();
  return gradients;
}

// Writes products of rows of this rank and gradients of bags for ranks that want them. Returns
// whether any does.
bool Embeddings::multiply_for_readers(const BagGradients& g) const {
  bool wanted = false;
  for (int reader = 0; reader < world_.size(); ++reader) {
    const EmbeddingPart of = part(reader);
    if (of.sizes->shares == 0) continue;
    require(g.pieces.size() == layout_.tables(), "{}", kChangedTables);
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
                     .rows = g.pieces[t],
                     .columns = piece.columns,
                     .places = split == EmbeddingSplit::rows ? &layout_.places(t) : nullptr,
                     .rank = world_.rank(),
                     .gradients = gradients + t * layout_.width() + piece.first_column,
                     .stride = layout_.tables() * layout_.width(),
                     .out = of.products + share * of.sizes->ids});
    }
  }
  return wanted;
}

void Embeddings::collect_weights(const GivenBags& bags, float* out) const {
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

RowGradients Embeddings::gradients_of(std::size_t t, const BagGradients& g) const {
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
    edges.add(bags, t, 0, mean);
    const bool empty = bags.per_table == 0;
    const float* const base = empty ? nullptr : g.sums + column;
    const float* const places = empty || !rules_.max() ? nullptr : as_rows(g.places + column);
    const bool counts = rules_.by_frequency && !alone;  // join() divides
    const Frequency here = counts ? Frequency::counted : rules_.frequency();
    return sum_by_row(std::move(edges), piece, {.base = base, .stride = stride}, here,
                      {.base = places, .stride = stride});
  }
  PeerRows readers;
  for (int reader = 0; reader < world_.size(); ++reader) {
    const EmbeddingPart of = part(reader);
    edges.weighted = edges.weighted || mean || of.sizes->weighted;
    readers.add(of.rows + column, of.sizes->per_table);
    readers.places.push_back(rules_.max() ? as_rows(of.places + column) : nullptr);
  }
  for (int reader = 0; reader < world_.size(); ++reader) {
    const Bags bags = part(reader).bags();
    const Slot first = readers.first[static_cast<std::size_t>(reader)];
    if (split == EmbeddingSplit::rows)
      edges.add(owned_bags(bags, t, layout_.places(t), world_.rank(), mean), first);
    else
      edges.add(bags, t, first, mean);
  }
  return sum_by_row(std::move(edges), piece, readers.source(stride), rules_.frequency(),
                    readers.source(stride, true));
}

// Shows this rank's gradient of a replicated table to the others, from row `start` on. Returns the
// row behind it.
std::uint64_t Embeddings::offer(std::size_t t, const RowGradients& mine, std::uint64_t start) {
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
RowGradients Embeddings::join(std::size_t t) const {
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
  return sum_by_row(std::move(edges), layout_.piece(t, world_.rank()), ranks.source(width),
                    rules_.frequency());
}

}  // namespace plait
