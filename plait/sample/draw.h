// The choice of some of a vertex's edges, one function for the CPU and the GPU.
//
// A draw is a pure function of a key, the vertex, the hop and, in disjoint samples, the tree. So a
// vertex has the same neighbours whichever rank, thread or device samples it, and in whatever
// company.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/portable_math.h"
#include "plait/base/random.h"

namespace plait {

// The largest fan-out: the counter of a draw has 24 bits for blocks of at least two numbers.
inline constexpr std::uint64_t kMostFanout = std::uint64_t{1} << 24;
// The most edges of a row from which edges are drawn by weight without replacement: each edge has a
// number of its own.
inline constexpr std::uint64_t kMostWeighted = std::uint64_t{1} << 25;

// Names the draws of one vertex.
struct DrawId {
  std::uint64_t key = 0;  // of the batch: sample_key()
  std::uint64_t vertex = 0;
  std::uint32_t tree = 0;  // number of the seed in a disjoint sample, else 0
  std::uint8_t hop = 0;    // from 0
};

// Returns the key of a batch of a run.
PLAIT_HOST_DEVICE constexpr std::uint64_t sample_key(std::uint64_t seed, std::uint64_t batch) {
  const auto words = Philox(seed)(batch, 0x53616D706C65u);  // apart from other uses of the seed
  return std::uint64_t{words[0]} << 32 | words[1];
}

// The random numbers of one vertex, by their place. Encoding of a counter: low is the vertex; high
// has the tree in bits 32 to 63, the hop in bits 24 to 31, and the number of the block of four
// words below.
class VertexDraws {
 public:
  PLAIT_HOST_DEVICE explicit constexpr VertexDraws(const DrawId& id)
      : philox_(id.key),
        vertex_(id.vertex),
        high_(std::uint64_t{id.tree} << 32 | std::uint64_t{id.hop} << 24) {}

  // Returns number `i`, uniform in [0, bound). `population` chooses the precision, and must be the
  // same for all numbers of the vertex: up to 2^16, numbers have 32 bits (a bias below 2^-16), else
  // 64 bits.
  PLAIT_HOST_DEVICE constexpr std::uint64_t below(std::uint64_t bound, std::uint64_t i,
                                                  std::uint64_t population) const {
    const std::uint64_t per_block = numbers_per_block(population);
    return number(block(i / per_block), bound, i % per_block, population);
  }

  // The parts of below(), for callers that need many numbers: a block has so many of them.
  PLAIT_HOST_DEVICE static constexpr std::uint64_t numbers_per_block(std::uint64_t population) {
    return population <= kSmall ? 4 : 2;
  }
  PLAIT_HOST_DEVICE constexpr Philox::Block block(std::uint64_t i) const {
    return philox_(vertex_, high_ | i);
  }
  PLAIT_HOST_DEVICE static constexpr std::uint64_t number(const Philox::Block& words,
                                                          std::uint64_t bound, std::uint64_t i,
                                                          std::uint64_t population) {
    if (population <= kSmall) return std::uint64_t{words[i]} * bound >> 32;
    return uniform_below(bound, words[2 * i], words[2 * i + 1]);
  }

  // Returns number `i`, uniform in [0, 1) with 53 bits.
  PLAIT_HOST_DEVICE constexpr double share(std::uint64_t i) const {
    return static_cast<double>(bits(std::uint64_t{1} << 53, i)) * 0x1p-53;
  }

  // Returns number `i`, uniform in (0, 1): the middles of 2^52 intervals.
  PLAIT_HOST_DEVICE constexpr double inner_share(std::uint64_t i) const {
    return (static_cast<double>(bits(std::uint64_t{1} << 52, i)) + 0.5) * 0x1p-52;
  }

  static constexpr std::uint64_t kSmall = std::uint64_t{1} << 16;

 private:
  PLAIT_HOST_DEVICE constexpr std::uint64_t bits(std::uint64_t bound, std::uint64_t i) const {
    return below(bound, i, kSmall + 1);
  }

  Philox philox_;
  std::uint64_t vertex_, high_;
};

// Returns a position that is drawn by weight: the first one whose sum is greater than `share`, in
// [0, 1), of the last one. `sums`: of the weights of a row up to each edge; the last one is above
// 0.
PLAIT_HOST_DEVICE constexpr std::uint64_t drawn_by_sums(const double* sums, std::uint64_t size,
                                                        double share) {
  const double sought = share * sums[size - 1];
  std::uint64_t first = 0, last = size;
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    if (sums[middle] > sought)
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

// Chooses `count` different positions of 0 .. population - 1, count <= population, every set
// equally likely: Floyd's algorithm (Bentley and Floyd, "A sample of brilliance", CACM 1987).
// Position i is a number drawn below population - count + i + 1 or, if that was chosen before,
// population - count + i itself; so a GPU draws all numbers at once and then settles them one after
// the other. `position` has room for `count` numbers. This is the plain version, quadratic in
// `count`.
template <class Position>
PLAIT_HOST_DEVICE constexpr void choose_distinct(const VertexDraws& draws, std::uint64_t population,
                                                 std::uint64_t count, Position* position) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t last = population - count + i;
    auto chosen = static_cast<Position>(draws.below(last + 1, i, population));
    for (std::uint64_t j = 0; j < i; ++j)
      if (position[j] == chosen) {
        chosen = static_cast<Position>(last);
        break;
      }
    position[i] = chosen;
  }
}

// Returns the rank of an edge of weight > 0 in draws by weight without replacement: the edges of
// the least ranks are drawn (Efraimidis and Spirakis, "Weighted random sampling with a reservoir",
// IPL 2006, by logarithms). The inner_share() `u` has the edge's place in its row for its number.
// All machines get the same bits. Ranks are at least weighted_rank_bound().
PLAIT_HOST_DEVICE constexpr double weighted_rank(double u, float weight) {
  return -portable::log2(u) / static_cast<double>(weight);
}

// Returns a lower bound of the rank times the weight, without a logarithm: -log2(u) is more than
// 1.44 (1 - u).
PLAIT_HOST_DEVICE constexpr double weighted_rank_bound(double u) { return 1.4 * (1 - u); }

}  // namespace plait
