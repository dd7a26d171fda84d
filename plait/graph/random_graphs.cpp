#include "plait/graph/random_graphs.h"

#include <algorithm>
#include <bit>

#include "plait/base/error.h"
#include "plait/base/random.h"
#include "plait/graph/generate.h"
#include "plait/graph/made_edges.h"

namespace plait {
namespace {

// The upper half of a counter says what is drawn, the lower half for which edge.
constexpr std::uint64_t kSmallWorldStream = std::uint64_t{3} << 56;
constexpr std::uint64_t kBipartiteStream = std::uint64_t{4} << 56;
constexpr std::uint64_t kCrawlStream = std::uint64_t{5} << 56;

// Returns a number below `size`, which is at most 2^48, from 64 random bits.
std::uint64_t below(std::uint64_t size, std::uint32_t high, std::uint32_t low) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{std::uint64_t{high} << 32 | low} * size >> 64);
}

// Returns the page to which a link of `page` leads.
std::uint64_t aim_of(const Philox::Block& random, std::uint64_t page, std::uint64_t pages) {
  constexpr std::uint64_t kSite = 64;
  switch (random[0] >> 30) {
    case 0: {  // any page, most often one of few
      const double u = uniform_double(random[1], random[2]);
      return static_cast<std::uint64_t>(u * u * u * u * static_cast<double>(pages));
    }
    case 1:  // the first page of the site
      return page / kSite * kSite;
    default: {  // a page at most half the crawl away
      const auto levels = static_cast<std::uint64_t>(std::bit_width(pages) - 1);
      const std::uint64_t least = std::uint64_t{1} << below(levels, random[1], 0);
      const std::uint64_t distance = least + below(least, random[2], random[3]);
      const bool forward = (random[0] & 1) != 0;
      return (forward ? page + distance : page + pages - distance) % pages;
    }
  }
}

}  // namespace

AnyEdgeList generate_small_world(const SmallWorldOptions& o) {
  require_count("vertices", o.vertices, 1);
  require<UsageError>(o.degree % 2 == 0 && o.degree < o.vertices,
                      "the degree {} is not an even number below the {} vertices", o.degree,
                      o.vertices);
  require<UsageError>(o.rewired >= 0 && o.rewired <= 1, "the probability {} is outside 0..1",
                      o.rewired);
  require<UsageError>(o.degree <= kMostGenerated / o.vertices, "there would be too many edges");
  const Philox philox(o.seed);
  const std::uint64_t ahead = o.degree / 2;
  return make_list(o.vertices, o.vertices * o.degree, [&](auto& list) {
    for_each_index(o.vertices * ahead, [&](std::uint64_t pair) {
      const std::uint64_t v = pair / ahead;
      const Philox::Block random = philox(pair, kSmallWorldStream);
      const std::uint64_t u = uniform_double(random[0], random[1]) < o.rewired
                                  ? below(o.vertices, random[2], random[3])
                                  : (v + 1 + pair % ahead) % o.vertices;
      put_both_ways(list, 2 * pair, v, u);
    });
  });
}

AnyEdgeList generate_bipartite(const BipartiteOptions& o) {
  require_count("vertices", o.vertices, 2);
  require_count("edges", o.edges, 0);
  require<UsageError>(o.left >= 1 && o.left < o.vertices,
                      "{} of {} vertices on the left leave no side", o.left, o.vertices);
  require<UsageError>(o.edges % 2 == 0, "{} edges are not an even number", o.edges);
  const Philox philox(o.seed);
  return make_list(o.vertices, o.edges, [&](auto& list) {
    for_each_index(o.edges / 2, [&](std::uint64_t pair) {
      const Philox::Block random = philox(pair, kBipartiteStream);
      put_both_ways(list, 2 * pair, below(o.left, random[0], random[1]),
                    o.left + below(o.vertices - o.left, random[2], random[3]));
    });
  });
}

AnyEdgeList generate_crawl(const CrawlOptions& o) {
  require_count("vertices", o.vertices, 2);
  require_count("edges", o.edges, 0);
  const Philox philox(o.seed);
  return make_list(o.vertices, o.edges, [&](auto& list) {
    for_each_index(o.edges, [&](std::uint64_t edge) {
      const std::uint64_t page = edge % o.vertices;
      put(list, edge, page, aim_of(philox(edge, kCrawlStream), page, o.vertices));
    });
  });
}

}  // namespace plait
