#include "plait/store/sharded/embeddings.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/kernels/spmm.h"
#include "plait/store/bag_edges.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

constexpr std::size_t kCopyGrain = 64;  // samples

// The sizes of a batch, from which everyone knows where its arrays stand.
struct Sizes {
  std::uint64_t per_table = 0;  // bags
  std::uint64_t ids = 0;
  std::uint64_t extra = 0;  // rows beside one per bag
  bool weighted = false;
};

// Where the arrays of a rank's part of the heap stand.
class Places {
 public:
  explicit Places(std::byte* first) : first_(first), at_(0) {}
  template <class T>
  T* next(std::uint64_t count) {
    at_ = (at_ + kCacheLine - 1) / kCacheLine * kCacheLine;
    T* const place = reinterpret_cast<T*>(first_ + at_);
    at_ += count * sizeof(T);
    return place;
  }
  std::uint64_t bytes() const { return at_; }

 private:
  std::byte* first_;
  std::uint64_t at_;
};

// The word that a rank brings to the barrier at which a step begins. From the highest bit: its bags
// are wrong; the step; the last 13 bits of the batch's number; the bytes that it needs.
constexpr unsigned kFailedBit = 63, kStepBit = 62, kNumberBit = 49;
constexpr std::uint64_t kBytes = (std::uint64_t{1} << kNumberBit) - 1;
constexpr std::uint64_t kNumbers = (std::uint64_t{1} << kStepBit) - 1 - kBytes;
constexpr std::uint64_t kStepAndNumber = std::uint64_t{1} << kStepBit | kNumbers;

std::span<const EdgeOffset> from(const std::vector<EdgeOffset>& offsets, std::size_t first) {
  return std::span(offsets).subspan(first, offsets.size() - 1);
}

template <class T>
const T* data_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}
const float* data_or_null(const RawVector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

// The rows of gradients of several ranks, as numbers that edges name.
struct PeerRows {
  std::vector<const float*> base;  // by rank
  std::vector<Slot> first;         // by rank: the number of its first row
  std::vector<std::uint32_t> owner, row;

  void add(const float* rows, std::uint64_t count) {
    first.push_back(static_cast<Slot>(row.size()));
    owner.insert(owner.end(), count, static_cast<std::uint32_t>(base.size()));
    for (std::uint64_t k = 0; k < count; ++k) row.push_back(static_cast<std::uint32_t>(k));
    base.push_back(rows);
  }
  RowSource source(std::uint64_t stride) const {
    return {
        .stride = stride, .peers = base.data(), .halo_owner = owner.data(), .halo_row = row.data()};
  }
};

RowGradients sum_by_row(GradientEdges edges, const EmbeddingPiece& piece, const RowSource& x) {
  EdgesByRow sorted = by_row(std::move(edges), piece.rows);
  RowGradients sums{.values = RawVector<float>(sorted.rows.size() * piece.columns)};
  spmm({.begin = from(sorted.offsets, 0),
        .end = from(sorted.offsets, 1),
        .columns = sorted.from.data(),
        .weights = data_or_null(sorted.weights),
        .x = x,
        .width = piece.columns,
        .y = sums.values.data(),
        .y_stride = piece.columns});
  sums.rows = std::move(sorted.rows);
  return sums;
}

}  // namespace

// A rank's part of the heap. Every rank reads it; the owner of a piece writes sums there.
struct Embeddings::Part {
  Sizes* sizes = nullptr;
  EdgeOffset* offsets = nullptr;
  Slot* ids = nullptr;
  float* weights = nullptr;
  float* rows = nullptr;  // per_table x tables x width: sums, or their gradients
  // Rows beside one per bag, of table t and rank r from starts[t * (ranks + 1) + r] on. Forward:
  // the sums of this rank's bags by owners of rows; backward, with r = 0: this rank's gradients of
  // a replicated table, and the rows of the table that they are of.
  std::uint64_t* starts = nullptr;
  Slot* extra_ids = nullptr;
  float* extra = nullptr;
  std::uint64_t bytes = 0;

  Part(std::byte* first, const Sizes& s, const EmbeddingLayout& layout) {
    const std::uint64_t tables = layout.tables(), bags = s.per_table * tables;
    Places places(first);
    sizes = places.next<Sizes>(1);
    offsets = places.next<EdgeOffset>(bags + 1);
    ids = places.next<Slot>(s.ids);
    weights = places.next<float>(s.weighted ? s.ids : 0);
    rows = places.next<float>(bags * layout.width());
    starts = places.next<std::uint64_t>(tables * (static_cast<std::uint64_t>(layout.ranks()) + 1));
    extra_ids = places.next<Slot>(s.extra);
    extra = places.next<float>(s.extra * layout.width());
    bytes = places.bytes();
  }
  Bags bags() const {
    return {offsets, ids, sizes->weighted ? weights : nullptr, sizes->per_table};
  }
};

namespace {

// Returns the rows beside one per bag that a batch needs at most.
std::uint64_t extra_rows(const GivenBags& bags, const EmbeddingLayout& layout) {
  const std::uint64_t tables = layout.tables(), per_table = bags.count() / tables;
  const auto offset = [&](std::uint64_t bag) {
    return bag < bags.offsets.size() ? static_cast<std::uint64_t>(bags.offsets[bag])
                                     : bags.ids.size();
  };
  std::uint64_t sums = 0, gradients = 0;
  for (std::uint64_t t = 0; layout.ranks() > 1 && t < tables; ++t) {
    const std::uint64_t ids = offset((t + 1) * per_table) - offset(t * per_table);
    const EmbeddingTable& table = layout.table(t);
    if (table.split == EmbeddingSplit::rows)
      sums += std::min(ids, per_table * static_cast<std::uint64_t>(layout.ranks()));
    if (table.split == EmbeddingSplit::replicated) gradients += std::min(ids, table.rows);
  }
  return std::max(sums, gradients);
}

Sizes sizes_of(const GivenBags& bags, const EmbeddingLayout& layout) {
  return {.per_table = bags.count() / layout.tables(),
          .ids = bags.ids.size(),
          .extra = extra_rows(bags, layout),
          .weighted = bags.weights != nullptr};
}

void check_number_of_ids(const GivenBags& bags, int ranks) {
  const std::uint64_t most = kMaxVertices32 / static_cast<std::uint64_t>(ranks);
  require<UsageError>(std::max<std::uint64_t>(bags.ids.size(), bags.offsets.size()) < most,
                      "a batch has {} ids in {} bags; at most {} are supported on each of {} ranks",
                      bags.ids.size(), bags.count(), most - 1, ranks);
}

}  // namespace

Embeddings::Embeddings(World& world, EmbeddingLayout layout, std::vector<std::int64_t> padding)
    : world_(world), layout_(std::move(layout)), sent_(layout_.tables()) {
  require<UsageError>(layout_.tables() > 0 && layout_.tables() == padding.size(),
                      "{} embedding tables have {} ids of padding", layout_.tables(),
                      padding.size());
  tables_.padding = std::move(padding);
  for (std::size_t t = 0; t < layout_.tables(); ++t) tables_.rows.push_back(layout_.table(t).rows);
  heap_ = SymmetricHeap::create(world, Part(nullptr, {}, layout_).bytes);
}

Embeddings::~Embeddings() = default;

Embeddings::Part Embeddings::part(int rank) const {
  std::byte* const first = heap_->part(rank).data();
  Sizes sizes;
  std::memcpy(&sizes, first, sizeof(sizes));
  return {first, sizes, layout_};
}

// Collective. Ranks meet, so that none reads any more what the last step left; all learn whether
// the bags of one are wrong, and how much room they need.
void Embeddings::begin(Step step, std::uint64_t number, const GivenBags& bags) {
  require(heap_ != nullptr, "the memory of the embedding tables is lost; end the program");
  const std::string failure = failure_of([&] {
    check_bags(bags, tables_);
    check_number_of_ids(bags, layout_.ranks());
  });
  const bool failed = !failure.empty();
  const std::uint64_t bytes =
      failed ? 0 : Part(nullptr, sizes_of(bags, layout_), layout_).bytes & kBytes;
  const std::uint64_t mine = std::uint64_t{failed} << kFailedBit |
                             static_cast<std::uint64_t>(step) << kStepBit |
                             (number << kNumberBit & kNumbers) | bytes;
  const auto words = heap_->barrier(mine);
  if (std::ranges::any_of(words, [](std::uint64_t word) { return word >> kFailedBit != 0; }))
    throw UsageError(first_failure(world_, failure));
  for (std::size_t rank = 1; rank < words.size(); ++rank)
    require<UsageError>(((words[rank] ^ words[0]) & kStepAndNumber) == 0,
                        "ranks 0 and {} are not at the same step of the same batch of an embedding "
                        "table; all ranks must make the same calls in the same order",
                        rank);
  std::uint64_t most = 0;
  for (const std::uint64_t word : words) most = std::max(most, word & kBytes);
  if (most <= heap_->bytes()) return;
  published_ = 0;
  SymmetricHeap::replace(world_, heap_, most + most / 4);
}

void Embeddings::publish(const EmbeddingBatch& batch, std::uint64_t number) {
  if (published_ == number) return;
  published_ = number;
  const Sizes sizes = sizes_of(batch.bags, layout_);
  Part mine(heap_->part(world_.rank()).data(), sizes, layout_);
  *mine.sizes = sizes;
  const Bags bags = write_bags(batch.bags, tables_, {mine.offsets, mine.ids, mine.weights});
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

std::uint64_t Embeddings::forward(const EmbeddingBatch& batch, std::span<const float* const> pieces,
                                  float* out) {
  begin(Step::forward, number_ + 1, batch.bags);
  publish(batch, ++number_);
  heap_->barrier();
  for (int k = 0; k < world_.size(); ++k) {  // others first, who wait
    const int reader = (world_.rank() + 1 + k) % world_.size();
    for (std::size_t t = 0; t < layout_.tables(); ++t)
      if (layout_.table(t).split != EmbeddingSplit::replicated || reader == world_.rank())
        sum_for({reader, t, batch.mean}, pieces[t], out);
  }
  heap_->barrier();
  collect(out);
  return number_;
}

void Embeddings::sum_for(const Sum& sum, const float* rows, float* out) {
  const auto [reader, t, mean] = sum;
  const EmbeddingPiece piece = layout_.piece(t, world_.rank());
  if (piece.columns == 0) return;
  if (layout_.table(t).split == EmbeddingSplit::rows) return sum_owned(sum, rows);
  const Part to = part(reader);
  const Bags bags = to.bags();
  const std::uint64_t first = t * bags.per_table, stride = layout_.tables() * layout_.width();
  std::vector<float> scale(mean ? bags.per_table : 0);
  for (std::uint64_t b = 0; b < scale.size(); ++b) {
    const EdgeOffset ids = bags.offsets[first + b + 1] - bags.offsets[first + b];
    scale[b] = 1.0f / static_cast<float>(std::max<EdgeOffset>(ids, 1));
  }
  float* const sums = reader == world_.rank() ? out : to.rows;
  spmm({.begin = {bags.offsets + first, bags.per_table},
        .end = {bags.offsets + first + 1, bags.per_table},
        .columns = bags.ids,
        .weights = bags.weights,
        .x = {.base = rows, .stride = piece.columns},
        .width = piece.columns,
        .y = sums + t * layout_.width() + piece.first_column,
        .y_stride = stride,
        .row_scale = data_or_null(scale)});
}

void Embeddings::sum_owned(const Sum& sum, const float* rows) {
  const auto [reader, t, mean] = sum;
  const Part to = part(reader);
  const OwnedBags owned = owned_bags(to.bags(), t, layout_.places(t), world_.rank(), mean);
  const std::size_t start = t * (static_cast<std::size_t>(layout_.ranks()) + 1);
  spmm(
      {.begin = from(owned.offsets, 0),
       .end = from(owned.offsets, 1),
       .columns = owned.rows.data(),
       .weights = data_or_null(owned.weights),
       .x = {.base = rows, .stride = layout_.width()},
       .width = layout_.width(),
       .y = to.extra + to.starts[start + static_cast<std::size_t>(world_.rank())] * layout_.width(),
       .y_stride = layout_.width(),
       .row_scale = data_or_null(owned.scale)});
}

// Takes the sums of this rank's bags that others have written, and adds those by owners of rows.
void Embeddings::collect(float* out) const {
  const std::uint64_t width = layout_.width(), stride = layout_.tables() * width;
  const Part mine = part(world_.rank());
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
      for (const auto& [first, count] : runs)
        std::copy_n(mine.rows + b * stride + first, count, out + b * stride + first);
  });
}

void Embeddings::collect_owned(std::size_t t, float* out) const {
  const std::uint64_t width = layout_.width(), stride = layout_.tables() * width;
  const Part mine = part(world_.rank());
  const auto row_of = [&](std::uint64_t bag) { return out + bag * stride + t * width; };
  for (std::uint64_t b = 0; b < mine.sizes->per_table; ++b) std::fill_n(row_of(b), width, 0.0f);
  const std::size_t start = t * (static_cast<std::size_t>(layout_.ranks()) + 1);
  for (std::size_t owner = 0; owner < sent_[t].size(); ++owner) {
    const std::vector<Slot>& bags = sent_[t][owner];
    const float* const sums = mine.extra + mine.starts[start + owner] * width;
    parallel_blocks(bags.size(), kCopyGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        float* const row = row_of(bags[k]);
        for (std::uint64_t c = 0; c < width; ++c) row[c] += sums[k * width + c];
      }
    });
  }
}

std::vector<RowGradients> Embeddings::backward(const EmbeddingBatch& batch, std::uint64_t number,
                                               const float* gradient) {
  begin(Step::backward, number, batch.bags);
  publish(batch, number);
  const bool alone = world_.size() == 1;
  const Part mine = part(world_.rank());
  const std::uint64_t stride = layout_.tables() * layout_.width();
  if (!alone)
    parallel_blocks(mine.sizes->per_table, kCopyGrain, [&](std::size_t begin, std::size_t end) {
      std::copy_n(gradient + begin * stride, (end - begin) * stride, mine.rows + begin * stride);
    });
  heap_->barrier();
  std::vector<RowGradients> gradients;
  std::vector<std::size_t> shared;  // replicated tables
  std::uint64_t offered = 0;
  for (std::size_t t = 0; t < layout_.tables(); ++t) {
    gradients.push_back(gradients_of(t, batch.mean, gradient));
    if (layout_.table(t).split != EmbeddingSplit::replicated) continue;
    offered = offer(t, gradients.back(), offered);
    shared.push_back(t);
  }
  if (shared.empty()) return gradients;
  heap_->barrier();
  for (const std::size_t t : shared) gradients[t] = join(t);
  return gradients;
}

RowGradients Embeddings::gradients_of(std::size_t t, bool mean, const float* gradient) const {
  const EmbeddingPiece piece = layout_.piece(t, world_.rank());
  if (piece.rows == 0 || piece.columns == 0) return {};
  const std::uint64_t stride = layout_.tables() * layout_.width();
  const std::uint64_t column = t * layout_.width() + piece.first_column;
  const EmbeddingSplit split = layout_.table(t).split;
  GradientEdges edges;
  if (world_.size() == 1 || split == EmbeddingSplit::replicated) {
    const Bags bags = part(world_.rank()).bags();
    edges.weighted = mean || bags.weights != nullptr;
    edges.add(bags, t, 0, mean);
    return sum_by_row(std::move(edges), piece, {.base = gradient + column, .stride = stride});
  }
  PeerRows readers;
  for (int reader = 0; reader < world_.size(); ++reader) {
    const Part of = part(reader);
    edges.weighted = edges.weighted || mean || of.sizes->weighted;
    readers.add(of.rows + column, of.sizes->per_table);
  }
  for (int reader = 0; reader < world_.size(); ++reader) {
    const Bags bags = part(reader).bags();
    const Slot first = readers.first[static_cast<std::size_t>(reader)];
    if (split == EmbeddingSplit::rows)
      edges.add(owned_bags(bags, t, layout_.places(t), world_.rank(), mean), first);
    else
      edges.add(bags, t, first, mean);
  }
  return sum_by_row(std::move(edges), piece, readers.source(stride));
}

// Shows this rank's gradient of a replicated table to the others, from row `start` on. Returns the
// row behind it.
std::uint64_t Embeddings::offer(std::size_t t, const RowGradients& mine, std::uint64_t start) {
  if (world_.size() == 1) return start;
  const Part to = part(world_.rank());
  std::uint64_t* const starts = to.starts + t * (static_cast<std::size_t>(layout_.ranks()) + 1);
  starts[0] = start;
  starts[1] = start + mine.rows.size();
  std::ranges::copy(mine.rows, to.extra_ids + start);
  std::ranges::copy(mine.values, to.extra + start * layout_.width());
  return starts[1];
}

// Returns the sum of the gradients of a replicated table that all ranks show.
RowGradients Embeddings::join(std::size_t t) const {
  const std::uint64_t width = layout_.width();
  GradientEdges edges;
  PeerRows ranks;
  for (int rank = 0; rank < world_.size(); ++rank) {
    const Part of = part(rank);
    const std::uint64_t* const starts =
        of.starts + t * (static_cast<std::size_t>(layout_.ranks()) + 1);
    ranks.add(of.extra + starts[0] * width, starts[1] - starts[0]);
    for (std::uint64_t k = starts[0]; k < starts[1]; ++k) {
      edges.from.push_back(static_cast<Slot>(edges.rows.size()));
      edges.rows.push_back(of.extra_ids[k]);
    }
  }
  return sum_by_row(std::move(edges), layout_.piece(t, world_.rank()), ranks.source(width));
}

}  // namespace plait
