#include "plait/embedding/embedding_part.h"

#include <algorithm>

#include "plait/base/array.h"

namespace plait {
namespace {

// Finds the places of the arrays of a rank's part of the heap; without memory, counts their bytes.
class Places {
 public:
  explicit Places(std::byte* first) : first_(first), at_(0) {}
  template <class T>
  T* next(std::uint64_t count) {
    at_ = (at_ + kCacheLine - 1) / kCacheLine * kCacheLine;
    T* const place = first_ == nullptr ? nullptr : reinterpret_cast<T*>(first_ + at_);
    at_ += count * sizeof(T);
    return place;
  }
  std::uint64_t bytes() const { return at_; }

 private:
  std::byte* first_;
  std::uint64_t at_;
};

}  // namespace

std::uint64_t extra_rows(const EmbeddingLayout& layout, std::uint64_t per_table,
                         std::span<const std::uint64_t> ids) {
  std::uint64_t sums = 0, gradients = 0;
  for (std::size_t t = 0; layout.ranks() > 1 && t < layout.tables(); ++t) {
    const EmbeddingTable& table = layout.table(t);
    if (table.split == EmbeddingSplit::rows)
      sums += std::min(ids[t], per_table * static_cast<std::uint64_t>(layout.ranks()));
    if (table.split == EmbeddingSplit::replicated) gradients += std::min(ids[t], table.rows);
  }
  return std::max(sums, gradients);
}

std::uint64_t shares_of(const EmbeddingLayout& layout, std::size_t t) {
  const bool by_columns = layout.table(t).split == EmbeddingSplit::columns;
  return by_columns ? static_cast<std::uint64_t>(layout.ranks()) : 1;
}

EmbeddingSizes embedding_sizes(const GivenBags& bags, const EmbeddingLayout& layout,
                               bool products) {
  std::uint64_t shares = 0;
  for (std::size_t t = 0; products && t < layout.tables(); ++t)
    shares = std::max(shares, shares_of(layout, t));
  const std::uint64_t per_table = bags.count() / layout.tables();
  std::vector<std::uint64_t> ids;
  for (std::uint64_t t = 0; t < layout.tables(); ++t)
    ids.push_back(bags.begin_of((t + 1) * per_table) - bags.begin_of(t * per_table));
  return {.per_table = per_table,
          .ids = bags.ids.size(),
          .extra = extra_rows(layout, per_table, ids),
          .shares = shares,
          .weighted = bags.weights != nullptr};
}

EmbeddingPart::EmbeddingPart(std::byte* first, const EmbeddingSizes& s,
                             const EmbeddingLayout& layout) {
  const std::uint64_t tables = layout.tables(), bags = s.per_table * tables;
  Places arrays(first);
  sizes = arrays.next<EmbeddingSizes>(1);
  offsets = arrays.next<EdgeOffset>(bags + 1);
  ids = arrays.next<Slot>(s.ids);
  weights = arrays.next<float>(s.weighted ? s.ids : 0);
  const std::uint64_t sums = layout.ranks() > 1 ? bags * layout.width() : 0;
  rows = arrays.next<float>(sums);
  places = arrays.next<Slot>(s.max ? sums : 0);
  starts = arrays.next<std::uint64_t>(tables * (static_cast<std::uint64_t>(layout.ranks()) + 1));
  extra_ids = arrays.next<Slot>(s.extra);
  extra_counts = arrays.next<Slot>(s.extra);
  extra = arrays.next<float>(s.extra * layout.width());
  extra_places = arrays.next<Slot>(s.max ? s.extra * layout.width() : 0);
  products = arrays.next<float>(s.shares * s.ids);
  bytes = arrays.bytes();
}

}  // namespace plait
