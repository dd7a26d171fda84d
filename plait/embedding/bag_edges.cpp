#include "plait/embedding/bag_edges.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kBagGrain = 512;
constexpr std::size_t kEdgeGrain = std::size_t{1} << 16;
constexpr unsigned kDigitBits = 11;

// A row and the number of its edge.
struct Key {
  Slot row, edge;
};

// Sorts keys by `bits` bits of their rows from `shift` on, stably. Threads count and move blocks,
// whose bounds do not depend on the number of threads.
void sort_by_digit(const RawVector<Key>& from, RawVector<Key>& to, unsigned shift) {
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  const std::size_t blocks = (from.size() + kEdgeGrain - 1) / kEdgeGrain;
  const auto digit = [&](const Key& key) { return key.row >> shift & (kDigits - 1); };
  std::vector<std::size_t> places(blocks * kDigits);
  parallel_blocks(from.size(), kEdgeGrain, [&](std::size_t begin, std::size_t end) {
    std::size_t* const counts = &places[begin / kEdgeGrain * kDigits];
    for (std::size_t i = begin; i < end; ++i) ++counts[digit(from[i])];
  });
  std::size_t sum = 0;
  for (std::size_t d = 0; d < kDigits; ++d)
    for (std::size_t block = 0; block < blocks; ++block)
      sum += std::exchange(places[block * kDigits + d], sum);
  parallel_blocks(from.size(), kEdgeGrain, [&](std::size_t begin, std::size_t end) {
    std::size_t* const at = &places[begin / kEdgeGrain * kDigits];
    for (std::size_t i = begin; i < end; ++i) to[at[digit(from[i])]++] = from[i];
  });
}

RawVector<Key> sorted_keys(const RawVector<Slot>& rows, std::uint64_t bound) {
  RawVector<Key> keys(rows.size()), other(rows.size());
  parallel_blocks(rows.size(), kEdgeGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) keys[i] = {rows[i], static_cast<Slot>(i)};
  });
  const auto bits = static_cast<unsigned>(std::bit_width(bound > 0 ? bound - 1 : 0));
  for (unsigned shift = 0; shift < bits; shift += kDigitBits) {
    sort_by_digit(keys, other, shift);
    std::swap(keys, other);
  }
  return keys;
}

std::uint64_t size_of_bag(const Bags& bags, std::uint64_t bag) {
  return bags.offsets[bag + 1] - bags.offsets[bag];
}

// Calls use(edge, local row) for the edges of a bag to rows of a rank.
template <class Use>
void for_owned(const Bags& bags, std::uint64_t bag, const StoredRows& places, int rank, Use use) {
  for (EdgeOffset e = bags.offsets[bag]; e < bags.offsets[bag + 1]; ++e) {
    const RowPlace place = place_of(places, places.starts, bags.ids[e]);
    if (static_cast<int>(place.rank) == rank) use(e, static_cast<Slot>(place.row));
  }
}

}  // namespace

OwnedBags owned_bags(const Bags& bags, std::size_t t, const StoredRows& places, int rank,
                     bool mean) {
  const std::uint64_t first = t * bags.per_table;
  std::vector<Slot> counts(bags.per_table);
  parallel_blocks(bags.per_table, kBagGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b)
      for_owned(bags, first + b, places, rank, [&](EdgeOffset, Slot) { ++counts[b]; });
  });
  OwnedBags owned;
  owned.offsets.push_back(0);
  for (std::uint64_t b = 0; b < bags.per_table; ++b) {
    if (counts[b] == 0) continue;
    owned.bags.push_back(static_cast<Slot>(b));
    owned.offsets.push_back(owned.offsets.back() + counts[b]);
    if (mean) owned.scale.push_back(1.0f / static_cast<float>(size_of_bag(bags, first + b)));
  }
  owned.rows.resize(owned.offsets.back());
  owned.places.resize(owned.rows.size());
  if (bags.weights != nullptr) owned.weights.resize(owned.rows.size());
  parallel_blocks(owned.bags.size(), kBagGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      EdgeOffset at = owned.offsets[k];
      for_owned(bags, first + owned.bags[k], places, rank, [&](EdgeOffset e, Slot row) {
        owned.rows[at] = row;
        owned.places[at] = static_cast<Slot>(e - bags.offsets[first + owned.bags[k]]);
        if (bags.weights != nullptr) owned.weights[at] = bags.weights[e];
        ++at;
      });
    }
  });
  return owned;
}

std::vector<std::vector<Slot>> bags_by_owner(const Bags& bags, std::size_t t,
                                             const StoredRows& places) {
  std::vector<std::vector<Slot>> found(static_cast<std::size_t>(places.ranks));
  for (std::uint64_t b = 0; b < bags.per_table; ++b) {
    const std::uint64_t bag = t * bags.per_table + b;
    for (EdgeOffset e = bags.offsets[bag]; e < bags.offsets[bag + 1]; ++e) {
      auto& of_rank = found[place_of(places, places.starts, bags.ids[e]).rank];
      if (of_rank.empty() || of_rank.back() != b) of_rank.push_back(static_cast<Slot>(b));
    }
  }
  return found;
}

void GradientEdges::add(const Bags& bags, std::size_t t, Slot first_from, bool mean) {
  const EdgeOffset begin = bags.begin(t), before = rows.size();
  rows.resize(before + bags.end(t) - begin);
  from.resize(rows.size());
  if (weighted) weights.resize(rows.size());
  if (placed) places.resize(rows.size());
  parallel_blocks(bags.per_table, kBagGrain, [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      const std::uint64_t bag = t * bags.per_table + b;
      const float share = mean ? 1.0f / static_cast<float>(size_of_bag(bags, bag)) : 1.0f;
      for (EdgeOffset e = bags.offsets[bag]; e < bags.offsets[bag + 1]; ++e) {
        const EdgeOffset to = before + e - begin;
        rows[to] = bags.ids[e];
        from[to] = first_from + static_cast<Slot>(b);
        if (placed) places[to] = static_cast<Slot>(e - bags.offsets[bag]);
        if (weighted) weights[to] = bags.weights == nullptr ? share : share * bags.weights[e];
      }
    }
  });
}

void GradientEdges::add(const OwnedBags& bags, Slot first_from) {
  rows.insert(rows.end(), bags.rows.begin(), bags.rows.end());
  if (placed) places.insert(places.end(), bags.places.begin(), bags.places.end());
  for (std::size_t k = 0; k < bags.bags.size(); ++k)
    for (EdgeOffset e = bags.offsets[k]; e < bags.offsets[k + 1]; ++e) {
      from.push_back(first_from + bags.bags[k]);
      if (!weighted) continue;
      const float share = bags.scale.empty() ? 1.0f : bags.scale[k];
      weights.push_back(bags.weights.empty() ? share : share * bags.weights[e]);
    }
}

std::vector<Slot> EdgesByRow::ids_by_row() const {
  std::vector<Slot> ids(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (EdgeOffset e = offsets[k]; e < offsets[k + 1]; ++e)
      ids[k] += counts.empty() ? 1 : counts[e];
  return ids;
}

EdgesByRow by_row(GradientEdges edges, std::uint64_t rows) {
  const RawVector<Key> keys = sorted_keys(edges.rows, rows);
  EdgesByRow sorted;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && keys[i].row == keys[i - 1].row) continue;
    sorted.rows.push_back(keys[i].row);
    sorted.offsets.push_back(i);
  }
  sorted.offsets.push_back(keys.size());
  sorted.from.resize(keys.size());
  sorted.weights.resize(edges.weights.size());
  sorted.counts.resize(edges.counts.size());
  sorted.places.resize(edges.places.size());
  parallel_blocks(keys.size(), kEdgeGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      sorted.from[i] = edges.from[keys[i].edge];
      if (!sorted.weights.empty()) sorted.weights[i] = edges.weights[keys[i].edge];
      if (!sorted.counts.empty()) sorted.counts[i] = edges.counts[keys[i].edge];
      if (!sorted.places.empty()) sorted.places[i] = edges.places[keys[i].edge];
    }
  });
  return sorted;
}

}  // namespace plait
