#include "plait/embedding/cpu/cpu_embeddings.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plait/base/data_or_null.h"
#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/base/parallel.h"
#include "plait/embedding/bag_maxima.h"
#include "plait/embedding/row_norms.h"
#include "plait/kernels/spmm.h"

namespace plait {
namespace {

constexpr std::size_t kCopyGrain = 64;  // samples

}  // namespace

CpuEmbeddings::CpuEmbeddings(World& world, const EmbeddingLayout& layout,
                             const EmbeddingRules& rules)
    : Embeddings(world, layout, rules), sent_(layout.tables()) {
  heap_ = SymmetricHeap::create(world, EmbeddingPart(nullptr, {}, layout).bytes);
}

EmbeddingPart CpuEmbeddings::part(int rank) const {
  std::byte* const first = heap_->part(rank).data();
  EmbeddingSizes sizes;
  std::memcpy(&sizes, first, sizeof(sizes));
  return {first, sizes, layout_};
}

// Collective. Ranks meet, so that none reads any more what the last step left; then this rank's
// bags are in its part.
void CpuEmbeddings::begin(const EmbeddingStepOf& step, const GivenBags& bags) {
  fault_point();
  EmbeddingStepOf mine = step;
  EmbeddingSizes sizes;
  mine.failure = failure_of([&] {
    check_bags(bags, tables_);
    require_room_for_numbers(bags, layout_.ranks());
    sizes = embedding_sizes(bags, layout_, step.wants_products());
    sizes.max = rules_.max();
    mine.bytes = EmbeddingPart(nullptr, sizes, layout_).bytes;
  });
  const std::uint64_t most = begin_embedding_step(world_, *heap_, mine);
  if (most > heap_->bytes()) {
    published_ = 0;
    SymmetricHeap::replace(world_, heap_, most + most / 4);
  }
  step_.begin();
  fault_point();
  const EmbeddingPart place(heap_->part(world_.rank()).data(), sizes, layout_);
  *place.sizes = sizes;
  if (std::exchange(published_, step.number) == step.number) return;
  publish(bags);
}

void CpuEmbeddings::publish(const GivenBags& given) {
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

std::uint64_t CpuEmbeddings::run_forward(const GivenBags& bags, const TablePieces& pieces,
                                         const BagResults& out, void*) {
  begin({.step = EmbeddingStep::forward,
         .number = number_ + 1,
         .wants = out.backward,
         .type = pieces.type},
        bags);
  ++number_;
  heap_->barrier();
  fault_point();
  if (rules_.norm.limits()) limit_rows(pieces);
  fault_point();
  for (int k = 0; k < world_.size(); ++k) {  // others first, who wait
    const int reader = (world_.rank() + 1 + k) % world_.size();
    for (std::size_t t = 0; t < layout_.tables(); ++t)
      if (layout_.table(t).split != EmbeddingSplit::replicated || reader == world_.rank())
        sum_for({reader, t}, pieces, out);
  }
  fault_point();
  heap_->barrier();
  fault_point();
  collect(out);
  step_.end();
  return number_;
}

// Adds the edges of a reader's bags of table t to rows of this rank. The first bag reads row
// `first` of gradients.
void CpuEmbeddings::add_edges(std::size_t t, int reader, Slot first, GradientEdges& edges) const {
  const Bags bags = part(reader).bags();
  if (layout_.table(t).split == EmbeddingSplit::rows)
    edges.add(owned_bags(bags, t, layout_.places(t), world_.rank(), rules_.mean()), first);
  else
    edges.add(bags, t, first, rules_.mean());
}

// Limits the norms of rows that bags of any rank name, so that replicated rows stay the same. Ranks
// that have columns of the same rows join their sums of powers.
void CpuEmbeddings::limit_rows(const TablePieces& pieces) const {
  for (std::size_t t = 0; t < layout_.tables(); ++t) {
    const EmbeddingPiece piece = layout_.piece(t, world_.rank());
    const bool shared = layout_.table(t).split == EmbeddingSplit::columns;
    if (piece.columns == 0 && !shared) continue;
    GradientEdges edges;
    for (int reader = 0; reader < world_.size(); ++reader) add_edges(t, reader, 0, edges);
    const std::vector<Slot> rows = by_row(std::move(edges), piece.rows).rows;
    const PieceRows numbers = pieces.rows(t, piece.columns);
    std::vector<double> sums = norm_sums(rules_.norm, rows, numbers);
    fault_point();
    if (shared)
      join_norm_sums(rules_.norm, world_.all_gather(std::as_bytes(std::span(sums))), sums);
    limit_norms(rules_.norm, rows, sums, numbers);
  }
}

void CpuEmbeddings::sum_for(const Sum& sum, const TablePieces& pieces, const BagResults& out) {
  const auto [reader, t] = sum;
  const EmbeddingPiece piece = layout_.piece(t, world_.rank());
  if (piece.columns == 0) return;
  if (layout_.table(t).split == EmbeddingSplit::rows) return sum_owned(sum, pieces);
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
  const SpmmArgs args{
      .begin = {bags.offsets + first, bags.per_table},
      .end = {bags.offsets + first + 1, bags.per_table},
      .columns = bags.ids,
      .weights = bags.weights,
      .x = {.base = static_cast<const float*>(pieces.at[t]), .stride = piece.columns},
      .x_type = pieces.type,
      .width = piece.columns,
      .y = (own ? out.sums : to.rows) + column,
      .y_stride = stride,
      .row_scale = data_or_null(scale)};
  if (rules_.max())
    take_maxima(args, nullptr, (own ? out.places : to.places) + column);
  else
    spmm(args);
}

void CpuEmbeddings::sum_owned(const Sum& sum, const TablePieces& pieces) {
  const auto [reader, t] = sum;
  const EmbeddingPart to = part(reader);
  const OwnedBags owned = owned_bags(to.bags(), t, layout_.places(t), world_.rank(), rules_.mean());
  const std::size_t start = t * (static_cast<std::size_t>(layout_.ranks()) + 1);
  const std::uint64_t at =
      to.starts[start + static_cast<std::size_t>(world_.rank())] * layout_.width();
  const SpmmArgs args{
      .begin = offsets_from(owned.offsets, 0),
      .end = offsets_from(owned.offsets, 1),
      .columns = owned.rows.data(),
      .weights = data_or_null(owned.weights),
      .x = {.base = static_cast<const float*>(pieces.at[t]), .stride = layout_.width()},
      .x_type = pieces.type,
      .width = layout_.width(),
      .y = to.extra + at,
      .y_stride = layout_.width(),
      .row_scale = data_or_null(owned.scale)};
  rules_.max() ? take_maxima(args, owned.places.data(), to.extra_places + at) : spmm(args);
}

// Takes the sums of this rank's bags that others have written, and adds those by owners of rows.
void CpuEmbeddings::collect(const BagResults& out) const {
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

void CpuEmbeddings::collect_owned(std::size_t t, const BagResults& out) const {
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

}  // namespace plait
