#include "plait/graph/generate.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plait/base/random.h"
#include "plait/graph/made_edges.h"

namespace plait {
namespace {

constexpr std::size_t kMadeEdgesGrain = std::size_t{1} << 15;

// The upper half of a counter says what is drawn; the lower half, for which edge, round and so on.
constexpr std::uint64_t kRmatStream = std::uint64_t{1} << 56;
constexpr std::uint64_t kPermutationStream = std::uint64_t{2} << 56;

// The walk from the whole matrix to one entry, one quadrant per level.
class RmatWalk {
 public:
  explicit RmatWalk(const RmatOptions& options)
      : philox_(options.seed),
        vertices_(options.vertices),
        levels_(static_cast<unsigned>(std::bit_width(options.vertices - 1))),
        a_(threshold(options.a)),
        ab_(threshold(options.a + options.b)),
        abc_(threshold(options.a + options.b + options.c)) {}

  // Entries outside the matrix and on its diagonal are drawn again.
  std::pair<std::uint64_t, std::uint64_t> operator()(std::uint64_t edge) const {
    constexpr std::uint64_t kAttempts = 10000;
    for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
      const auto entry = walk(edge, kRmatStream | attempt << 8);
      if (entry.first != entry.second && std::max(entry.first, entry.second) < vertices_)
        return entry;
    }
    throw UsageError(
        "with these probabilities nearly all R-MAT edges are loops or outside the graph; make a "
        "and 1 - a - b - c smaller, or the number of vertices a power of 2");
  }

 private:
  // Probability times 2^32.
  static std::uint64_t threshold(double probability) {
    return static_cast<std::uint64_t>(probability * 0x1p32 + 0.5);
  }
  std::pair<std::uint64_t, std::uint64_t> walk(std::uint64_t edge, std::uint64_t stream) const {
    std::uint64_t row = 0, column = 0;
    for (unsigned level = 0; level < levels_; level += 4) {
      for (const std::uint32_t random : philox_(edge, stream | level)) {
        row = row << 1 | static_cast<std::uint64_t>(random >= ab_);
        column = column << 1 |
                 static_cast<std::uint64_t>((random >= a_ && random < ab_) || random >= abc_);
      }
    }
    const unsigned extra = (4 - levels_ % 4) % 4;
    return {row >> extra, column >> extra};
  }

  Philox philox_;
  std::uint64_t vertices_;
  unsigned levels_;
  std::uint64_t a_, ab_, abc_;
};

}  // namespace

AnyEdgeList generate_rmat(const RmatOptions& options) {
  require_count("vertices", options.vertices, 2);
  require_count("edges", options.edges, 0);
  const double smallest = std::min({options.a, options.b, options.c});
  require<UsageError>(smallest >= 0 && options.a + options.b + options.c <= 1,
                      "R-MAT probabilities {}, {}, {} must be in 0..1 and sum up to at most 1",
                      options.a, options.b, options.c);
  const RmatWalk walk(options);
  const Permutation shuffled(options.vertices, options.seed, kRmatStream);
  return make_list(options.vertices, options.edges, [&](auto& list) {
    parallel_blocks(options.edges, kMadeEdgesGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t edge = begin; edge < end; ++edge) {
        const auto [source, target] = walk(edge);
        put(list, edge, shuffled(source), shuffled(target));
      }
    });
  });
}

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(size) {
  const int bits = size < 2 ? 0 : std::bit_width(size - 1);
  mask_ = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  shift_ = std::max(1, (bits + 1) / 2);
  const Philox philox(seed);
  for (std::size_t i = 0; i < rounds_.size(); ++i) {
    const Philox::Block random = philox(stream, kPermutationStream | i);
    rounds_[i].factor = (std::uint64_t{random[0]} << 32 | random[1]) | 1;
    rounds_[i].addend = std::uint64_t{random[2]} << 32 | random[3];
  }
}

}  // namespace plait
