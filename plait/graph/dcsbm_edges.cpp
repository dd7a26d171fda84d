#include "plait/graph/dcsbm_edges.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/portable_math.h"
#include "plait/base/random.h"
#include "plait/base/row_grain.h"

namespace plait::dcsbm {
namespace {

constexpr std::size_t kDrawGrain = std::size_t{1} << 15;

std::uint64_t join(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

// Degrees --------------------------------------------------------------------------------------

// The integral of x^(s - 1) from 1 to 2^log2_k.
double power_integral(double s, double log2_k) {
  const double exponent = s * log2_k;
  if (std::abs(exponent) < 1e-7) return log2_k * portable::kLn2;  // the limit, s = 0
  return (portable::exp2(exponent) - 1) / s;
}

// Returns log2 of the k for which a Pareto distribution on 1 .. k has k = ratio * mean, by
// bisection.
double log2_of_largest_weight(double exponent, double ratio) {
  double low = 0, high = 100;
  for (int step = 0; step < 100; ++step) {
    const double k = (low + high) / 2;
    const double mean = power_integral(2 - exponent, k) / power_integral(1 - exponent, k);
    (portable::exp2(k) < ratio * mean ? low : high) = k;
  }
  return (low + high) / 2;
}

double mean_degree(const DcsbmOptions& options) {
  return static_cast<double>(options.edges) / static_cast<double>(options.vertices);
}

double degree_cap(const DcsbmOptions& options) {
  const auto vertices = static_cast<double>(options.vertices);
  const double cap =
      options.cap > 0 ? options.cap : std::max(vertices / 10, 10 * mean_degree(options));
  return std::min(cap, vertices - 1);
}

Buffer<double> draw_weights(const DcsbmOptions& options) {
  const double ratio = std::max(1.0, degree_cap(options) / mean_degree(options));
  const double log2_k = log2_of_largest_weight(options.exponent, ratio);
  const double s = 1 - options.exponent;
  const double cut = 1 - portable::exp2(s * log2_k);  // the share of the distribution below k
  const Philox philox(options.seed);
  Buffer<double> weights(options.vertices);
  parallel_blocks(options.vertices, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) {
      const Philox::Block random = philox(v, kWeightStream);
      weights[v] = portable::pow(1 - cut * uniform_double(random[0], random[1]), 1 / s);
    }
  });
  return weights;
}

// Drawing by weight ----------------------------------------------------------------------------

// An alias table (Walker 1977; built as by Vose 1991): item i is taken with probability keep /
// 2^32, else item `other`.
struct Alias {
  std::uint32_t keep = 0;
  std::uint32_t other = 0;
};

std::uint32_t pick(std::span<const Alias> table, std::uint64_t random) {
  const auto place = static_cast<unsigned __int128>(random) * table.size();
  const auto item = static_cast<std::uint32_t>(place >> 64);
  const auto fraction = static_cast<std::uint32_t>(static_cast<std::uint64_t>(place) >> 32);
  return fraction < table[item].keep ? item : table[item].other;
}

// Fills `table`, and returns the sum of the weights.
double build_alias(std::span<const double> weights, std::span<Alias> table) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  const double to_share = static_cast<double>(weights.size()) / sum;
  std::vector<std::pair<double, std::uint32_t>> small, large;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] * to_share;
    (share < 1 ? small : large).emplace_back(share, i);
    table[i] = {0xffffffffu, i};
  }
  while (!small.empty() && !large.empty()) {
    const auto [share, i] = small.back();
    small.pop_back();
    table[i] = {static_cast<std::uint32_t>(share * 0x1p32), large.back().second};
    large.back().first -= 1 - share;
    if (large.back().first < 1) {
      small.push_back(large.back());
      large.pop_back();
    }
  }
  return sum;
}

// Draws pairs of vertices, before ids are shuffled.
class PairSampler {
 public:
  PairSampler(const DcsbmOptions& options, std::span<const std::uint64_t> starts)
      : philox_(options.seed),
        starts_(starts),
        vertices_(options.vertices),
        communities_(options.communities) {
    const Buffer<double> weights = draw_weights(options);
    Buffer<double> sums(options.communities);
    parallel_blocks(options.communities, 16, [&](std::size_t begin, std::size_t end) {
      for (std::size_t c = begin; c < end; ++c)
        sums[c] = build_alias(of_community(weights.span(), c), of_community(vertices_.span(), c));
    });
    build_alias(sums.span(), communities_.span());
  }

  // Returns the pair (u, v), u < v, as u * 2^32 + v; or 0 if both ends are the same vertex.
  std::uint64_t inner(std::uint64_t draw) const {
    const Philox::Block a = philox_(draw, kInnerStream), b = philox_(draw, kInnerStream | 1);
    const std::uint32_t community = pick(communities_.span(), join(a[0], a[1]));
    return key(vertex(community, join(a[2], a[3])), vertex(community, join(b[0], b[1])));
  }
  // Returns a pair of vertices of two communities; 0 if every attempt draws the first community
  // again.
  std::uint64_t leaving(std::uint64_t draw) const {
    constexpr std::uint64_t kAttempts = 32;
    const Philox::Block a = philox_(draw, kLeavingStream);
    const std::uint32_t first = pick(communities_.span(), join(a[0], a[1]));
    for (std::uint64_t attempt = 1; attempt <= kAttempts; ++attempt) {
      const Philox::Block b = philox_(draw, kLeavingStream | attempt);
      const std::uint32_t second = pick(communities_.span(), join(b[0], b[1]));
      if (second != first)
        return key(vertex(first, join(a[2], a[3])), vertex(second, join(b[2], b[3])));
    }
    return 0;
  }

 private:
  template <class T>
  std::span<T> of_community(std::span<T> values, std::size_t c) const {
    return values.subspan(starts_[c], starts_[c + 1] - starts_[c]);
  }
  std::uint64_t vertex(std::uint32_t community, std::uint64_t random) const {
    return starts_[community] + pick(of_community(vertices_.span(), community), random);
  }
  static std::uint64_t key(std::uint64_t u, std::uint64_t v) {
    return u == v ? 0 : std::min(u, v) << 32 | std::max(u, v);
  }

  Philox philox_;
  std::span<const std::uint64_t> starts_;
  Buffer<Alias> vertices_;  // one table per community, in order
  Buffer<Alias> communities_;
};

// A set of pairs that many threads fill: open addressing, an empty slot is 0. Which pairs are in
// it does not depend on the order of insertion, though their slots do.
class PairSet {
 public:
  explicit PairSet(std::uint64_t most) : slots_(most + most / 2 + 64) {
    parallel_blocks(slots_.size(), kDrawGrain, [&](std::size_t begin, std::size_t end) {
      std::fill(slots_.begin() + begin, slots_.begin() + end, 0);
    });
  }
  static std::uint64_t bytes(std::uint64_t most) { return 12 * most; }

  std::uint64_t slot(std::uint64_t key) const {
    std::uint64_t hash = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 32) * 0x94d049bb133111ebu;
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(hash) * slots_.size()) >> 64);
  }
  void prefetch(std::uint64_t slot) const { __builtin_prefetch(slots_.data() + slot, 1); }
  // Inserts a key at the first free slot from slot(key) on. Returns whether the key is new.
  bool insert(std::uint64_t key, std::uint64_t slot) {
    for (;; slot = slot + 1 == slots_.size() ? 0 : slot + 1) {
      const std::atomic_ref<std::uint64_t> place(slots_[slot]);
      std::uint64_t found = place.load(std::memory_order_relaxed);
      if (found == 0 && place.compare_exchange_strong(found, key, std::memory_order_relaxed))
        return true;
      if (found == key) return false;
    }
  }
  std::span<const std::uint64_t> slots() const { return slots_.span(); }

 private:
  Buffer<std::uint64_t> slots_;
};

// Inserts draw(first) .. draw(first + count - 1); returns how many were new.
template <class Draw>
std::uint64_t insert_draws(PairSet& set, std::uint64_t first, std::uint64_t count, Draw draw) {
  std::atomic<std::uint64_t> inserted{0};
  parallel_blocks(count, kDrawGrain, [&](std::size_t begin, std::size_t end) {
    // Slots are far apart, so a batch of them is brought from memory at a time.
    std::array<std::pair<std::uint64_t, std::uint64_t>, 64> batch;  // key, slot
    std::uint64_t fresh = 0;
    while (begin < end) {
      std::size_t size = 0;
      for (; size < batch.size() && begin < end; ++begin) {
        const std::uint64_t key = draw(first + begin);
        if (key == 0) continue;
        batch[size] = {key, set.slot(key)};
        set.prefetch(batch[size++].second);
      }
      for (std::size_t i = 0; i < size; ++i) fresh += set.insert(batch[i].first, batch[i].second);
    }
    inserted.fetch_add(fresh, std::memory_order_relaxed);
  });
  return inserted;
}

// Draws until `wanted` new pairs are in the set: as many as are missing, again and again.
template <class Draw>
void insert_pairs(PairSet& set, const char* kind, std::uint64_t wanted, Draw draw) {
  const std::uint64_t most = 50 * wanted + 1000000;
  std::uint64_t found = 0, drawn = 0;
  while (found < wanted) {
    require(
        drawn < most,
        "after {} draws, {} of {} pairs of vertices {} communities are found: nearly all likely "
        "pairs are taken; ask for fewer edges or communities, or a larger exponent",
        drawn, found, wanted, kind);
    const std::uint64_t missing = wanted - found;
    found += insert_draws(set, drawn, missing, draw);
    drawn += missing;
  }
}

}  // namespace

std::vector<std::uint64_t> community_starts(std::uint64_t vertices, std::uint64_t communities) {
  constexpr double kLargest = 10;  // times the smallest
  std::vector<double> before(communities + 1, 0);
  for (std::uint64_t c = 0; c < communities; ++c) {
    const double quantile = (static_cast<double>(c) + 0.5) / static_cast<double>(communities);
    before[c + 1] = before[c] + 1 / (1 - quantile * (1 - 1 / kLargest));
  }
  // Each community gets one vertex; the others are dealt by size.
  const auto spare = static_cast<double>(vertices - communities);
  std::vector<std::uint64_t> starts(communities + 1);
  for (std::uint64_t c = 0; c < communities; ++c)
    starts[c] = c + static_cast<std::uint64_t>(spare * (before[c] / before[communities]));
  starts[communities] = vertices;
  return starts;
}

Pairs possible_pairs(std::span<const std::uint64_t> starts) {
  const auto among = [](std::uint64_t n) { return n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n; };
  Pairs pairs;
  for (std::size_t c = 0; c + 1 < starts.size(); ++c)
    pairs.inner += among(starts[c + 1] - starts[c]);
  pairs.leaving = among(starts.back()) - pairs.inner;
  return pairs;
}

Pairs wanted_pairs(const DcsbmOptions& options) {
  const std::uint64_t pairs = options.edges / 2;
  const auto leaving =
      static_cast<std::uint64_t>(options.leaving * static_cast<double>(pairs) + 0.5);
  return {pairs - leaving, leaving};
}

EdgeList<std::uint32_t> draw_edges(const DcsbmOptions& options,
                                   std::span<const std::uint64_t> starts,
                                   std::span<const std::uint32_t> ids) {
  const Pairs wanted = wanted_pairs(options);
  PairSet set(wanted.inner + wanted.leaving);
  {
    const PairSampler sampler(options, starts);
    insert_pairs(set, "inside", wanted.inner, [&](std::uint64_t i) { return sampler.inner(i); });
    insert_pairs(set, "between", wanted.leaving,
                 [&](std::uint64_t i) { return sampler.leaving(i); });
  }
  const std::span<const std::uint64_t> slots = set.slots();
  const std::size_t blocks = (slots.size() + kDrawGrain - 1) / kDrawGrain;
  std::vector<std::uint64_t> begins(blocks + 1, 0);
  parallel_blocks(slots.size(), kDrawGrain, [&](std::size_t begin, std::size_t end) {
    begins[begin / kDrawGrain + 1] = static_cast<std::uint64_t>(
        std::count_if(slots.begin() + begin, slots.begin() + end, [](auto key) { return key; }));
  });
  for (std::size_t b = 0; b < blocks; ++b) begins[b + 1] += begins[b];
  EdgeList<std::uint32_t> list{options.vertices,
                               Buffer<std::uint32_t>(begins[blocks]),
                               Buffer<std::uint32_t>(begins[blocks]),
                               {}};
  parallel_blocks(slots.size(), kDrawGrain, [&](std::size_t begin, std::size_t end) {
    std::uint64_t edge = begins[begin / kDrawGrain];
    for (const std::uint64_t key : slots.subspan(begin, end - begin)) {
      if (key == 0) continue;
      list.source[edge] = ids[key >> 32];
      list.target[edge++] = ids[key & 0xffffffffu];
    }
  });
  return list;
}

std::uint64_t drawing_bytes(std::uint64_t pairs, std::uint64_t vertices) {
  const std::uint64_t sampling = (sizeof(double) + sizeof(Alias)) * vertices;
  return PairSet::bytes(pairs) + std::max(2 * sizeof(std::uint32_t) * pairs, sampling);
}

}  // namespace plait::dcsbm
