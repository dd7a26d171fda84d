// Label propagation: it finds planted clusters, and is the same as a plain version with a map.
#include "plait/communities/clusters.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plait/communities/clusters_rule.h"
#include "plait/graph/dcsbm.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

std::vector<std::uint32_t> clusters_of(const Csr32& graph, int rounds = kClusterRounds) {
  return find_clusters(graph.offsets.span().first(graph.vertices()),
                       graph.offsets.span().subspan(1), graph.neighbours.data(), rounds);
}

TEST(Clusters, AreThoseThatWerePlanted) {
  DcsbmOptions options{.vertices = 20000, .edges = 800000, .communities = 40, .classes = 40};
  options.width = 1;
  const Dataset data = generate_dcsbm(options);
  const auto labels = clusters_of(std::get<Csr32>(data.graph));
  // Counts the vertices of each planted community that carry its most frequent label.
  std::map<std::int64_t, std::map<std::uint32_t, int>> found;
  for (std::uint64_t v = 0; v < data.vertices(); ++v) ++found[data.labels[v]][labels[v]];
  int right = 0;
  std::set<std::uint32_t> distinct;
  for (const auto& [community, counts] : found) {
    const auto most =
        std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    right += most->second;
    distinct.insert(most->first);
  }
  EXPECT_GT(right, 19000);
  EXPECT_GE(distinct.size(), 38u);
}

// Follows the rule of clusters.h, label by label.
std::vector<std::uint32_t> plain(const Csr32& graph, std::uint64_t rows, int rounds) {
  std::vector<std::uint32_t> labels(rows);
  for (std::uint32_t i = 0; i < rows; ++i) labels[i] = i;
  for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(rounds); ++round) {
    std::vector<std::uint32_t> next = labels;
    for (std::uint32_t i = 0; i < rows; ++i) {
      const auto row = graph.row(i);
      std::map<std::uint32_t, std::uint32_t> votes;
      const std::size_t samples = std::min<std::size_t>(row.size(), 32);
      for (std::uint32_t k = 0; k < samples; ++k) {
        const std::size_t at =
            row.size() <= 32 ? k : (k * row.size() + cluster_hash(i, round) % row.size()) / 32;
        if (row[at] < rows) ++votes[labels[row[at]]];
      }
      std::pair<std::uint32_t, std::uint32_t> best{0, 0};
      for (const auto& [label, count] : votes) {
        const std::pair mine{count + (label == labels[i]), cluster_hash(label, round)};
        if (mine > best) best = mine, next[i] = label;
      }
    }
    labels = next;
  }
  return labels;
}

TEST(Clusters, FollowTheRule) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::uint64_t vertices = 1 + seed * 13;
    const Csr32 graph = test::random_csr<std::uint32_t>(vertices, vertices * (seed % 5) * 12, seed);
    EXPECT_EQ(clusters_of(graph, 5), plain(graph, vertices, 5)) << seed;
  }
}

TEST(Clusters, PassOverSlotsOfTheHalo) {
  const Csr32 graph = test::random_csr<std::uint32_t>(100, 3000, 7);
  const auto labels = find_clusters(graph.offsets.span().first(60),
                                    graph.offsets.span().subspan(1, 60), graph.neighbours.data());
  EXPECT_EQ(labels, plain(graph, 60, kClusterRounds));
}

TEST(Clusters, OfNothing) { EXPECT_TRUE(find_clusters<std::uint32_t>({}, {}, nullptr).empty()); }

}  // namespace
}  // namespace plait
