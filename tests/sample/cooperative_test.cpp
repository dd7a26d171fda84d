// The parts of all ranks are together the sample of one rank, and shared rows are those of the
// inputs.
#include "plait/sample/cooperative.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/sample_case.h"
#include "tests/support/thread_channel.h"

namespace plait::test {
namespace {

using Ids = std::vector<std::uint64_t>;
// The sources of a target's edges and their places in the graph, in their order.
using Row = std::vector<std::pair<std::uint64_t, EdgeOffset>>;

std::map<std::uint64_t, Row> rows_of(const Sample& sample, const Sample::Hop& hop) {
  std::map<std::uint64_t, Row> rows;
  for (std::uint64_t t = 0; t < hop.targets(); ++t) {
    const bool is_new = rows.emplace(sample.vertices[t], Row()).second;
    EXPECT_TRUE(is_new) << "vertex " << sample.vertices[t] << " is a target twice";
    for (std::uint64_t e = hop.offsets[t]; e < hop.offsets[t + 1]; ++e)
      rows[sample.vertices[t]].emplace_back(sample.vertices[hop.neighbours[e]], hop.edges[e]);
  }
  return rows;
}

Ids different_seeds(std::uint64_t vertices, std::uint64_t wanted) {
  Ids seeds;
  for (std::uint64_t v = vertices; v-- > 0 && seeds.size() < wanted;)
    if (v % 3 != 1) seeds.push_back(v);
  return seeds;
}

// All hops of all ranks.
struct Together {
  std::vector<std::vector<CooperativeHop>> by_rank;

  Together(const AnyCsr& graph, const SampleSettings& settings, const SampleValues& values,
           const Partition& partition, const Ids& seeds, std::uint64_t key)
      : by_rank(static_cast<std::size_t>(partition.parts())) {
    ThreadRanks(partition.parts()).run([&](int rank, Channel& channel) {
      CooperativeSampler sampler(graph, settings, values, partition, rank, channel);
      Ids own;
      for (const std::uint64_t seed : seeds)
        if (partition.owner(seed) == rank) own.push_back(seed);
      sampler.sample(own, key + 1);  // memory is as before after each call
      by_rank[static_cast<std::size_t>(rank)] = sampler.sample(own, key);
    });
  }
};

void expect_one_sample(const Together& together, const Sample& one) {
  for (std::size_t h = 0; h < one.hops.size(); ++h) {
    std::map<std::uint64_t, Row> rows;
    for (const auto& hops : together.by_rank)
      for (const auto& [target, row] : rows_of(hops[h].sample, hops[h].sample.hops[0]))
        EXPECT_TRUE(rows.emplace(target, row).second) << target << " is a target on two ranks";
    EXPECT_EQ(rows, rows_of(one, one.hops[h])) << "hop " << h;
  }
}

// A hop's inputs get the rows that their owners have, if these are the vertices' ids.
void expect_shared(const Together& together, std::size_t h) {
  const auto targets_of = [&](std::size_t rank) {
    const Sample& next = together.by_rank[rank][h + 1].sample;
    return Ids(next.vertices.begin(), next.vertices.begin() + static_cast<long>(next.seeds));
  };
  const std::size_t ranks = together.by_rank.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto& [sample, rows] = together.by_rank[rank][h];
    Ids held = targets_of(rank);
    ASSERT_EQ(rows.own, held.size());
    for (std::size_t from = 0; from < ranks; ++from) {
      const SharedRows& theirs = together.by_rank[from][h].rows;
      ASSERT_EQ(theirs.sent_to[rank], rows.received_from[from]);
      std::uint64_t first = 0;
      for (std::size_t r = 0; r < rank; ++r) first += theirs.sent_to[r];
      const Ids there = targets_of(from);
      for (std::uint64_t i = first; i < first + theirs.sent_to[rank]; ++i)
        held.push_back(there.at(theirs.sent[i]));
    }
    EXPECT_EQ(rows.sent_to[rank], 0u);
    ASSERT_EQ(held.size(), rows.own + rows.received());
    ASSERT_EQ(rows.places.size(), sample.vertices.size());
    for (std::size_t i = 0; i < rows.places.size(); ++i)
      EXPECT_EQ(held.at(rows.places[i]), sample.vertices[i]);
    for (std::uint64_t t = 0; t < sample.seeds; ++t) EXPECT_EQ(rows.places[t], t);
    EXPECT_EQ(std::set(rows.places.begin(), rows.places.end()).size(), rows.places.size());
  }
}

TEST(CooperativeSampler, IsTheSampleOfOneRank) {
  std::uint64_t key = 3;
  for (const SampleGraph& graph : sample_graphs())
    for (const SampleKind& kind : sample_kinds()) {
      if (kind.disjoint || kind.targets != HopTargets::all) continue;
      const std::vector<std::vector<std::int64_t>> fanouts{{}, {2}, {3, 2}, {-1, 4, -1}, {1, 70}};
      for (const auto& fanout : fanouts) {
        const std::uint64_t vertices = graph.graph.vertices();
        const AnyCsr csr = graph.with_ids_of(++key % 2 == 0);
        const Ids seeds = different_seeds(vertices, key % 7 * 3);
        const Sample one =
            sample_neighbours_reference(csr, kind.settings(fanout), kind.values(graph), seeds, key);
        for (const int ranks : {1, 2, 3, 5})
          for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash}) {
            SCOPED_TRACE(fmt::format("{}, {} vertices, {} ranks, key {}", kind.name(), vertices,
                                     ranks, key));
            const Partition partition = make_partition(scheme, csr, ranks);
            const Together together(csr, kind.settings(fanout), kind.values(graph), partition,
                                    seeds, key);
            expect_one_sample(together, one);
            for (std::size_t h = 0; h + 1 < fanout.size(); ++h) expect_shared(together, h);
          }
      }
    }
}

TEST(CooperativeTargets, EachInputOfTheLastHopIsOneRanksToFetch) {
  const Csr64 graph = random_csr<std::uint64_t>(300, 4000, 1);
  const SampleSettings settings{.fanouts = {3, 4}, .targets = HopTargets::all};
  const NeighbourSampler sampler(graph, settings);
  const Ids seeds = different_seeds(300, 40);
  const Sample one = sampler.sample(seeds, 5, *sampler.workspace());
  for (const int ranks : {1, 3}) {
    const Partition partition = make_partition(PartitionScheme::hash, AnyCsr(graph), ranks);
    const auto count = static_cast<std::size_t>(ranks);
    std::vector<Ids> fetched(count), inputs(count);
    std::vector<SharedRows> rows(count);
    ThreadRanks(ranks).run([&](int rank, Channel& channel) {
      const auto r = static_cast<std::size_t>(rank);
      CooperativeTargets targets(300, partition, rank, channel);
      Ids own;
      for (const std::uint64_t seed : seeds)
        if (partition.owner(seed) == rank) own.push_back(seed);
      targets.begin(own);
      const auto workspace = sampler.workspace();
      for (std::size_t h = 0; h < 2; ++h) {
        const Sample hop = sampler.sample_hop(h, targets.vertices(), 5, *workspace);
        inputs[r].assign(hop.vertices.begin(), hop.vertices.end());
        rows[r] = targets.share(inputs[r]);
      }
      fetched[r].assign(targets.vertices().begin(), targets.vertices().end());
    });
    Ids all;
    for (const Ids& part : fetched) all.insert(all.end(), part.begin(), part.end());
    EXPECT_THAT(all, testing::UnorderedElementsAreArray(one.vertices));
    for (std::size_t r = 0; r < count; ++r) {
      Ids held = fetched[r];  // and the rows that come from others, in the order of ranks
      for (std::size_t from = 0; from < count; ++from) {
        std::uint64_t first = 0;
        for (std::size_t to = 0; to < r; ++to) first += rows[from].sent_to[to];
        for (std::uint64_t i = 0; i < rows[from].sent_to[r]; ++i)
          held.push_back(fetched[from].at(rows[from].sent[first + i]));
      }
      ASSERT_EQ(rows[r].places.size(), inputs[r].size());
      for (std::size_t i = 0; i < inputs[r].size(); ++i)
        EXPECT_EQ(held.at(rows[r].places[i]), inputs[r][i]);
    }
  }
}

TEST(CooperativeSampler, RefusesWhatDoesNotGoTogether) {
  const Csr64 graph = random_csr<std::uint64_t>(40, 300, 1);
  const Partition partition = partition_by_vertices(40, 2);
  const auto sampled = [&](const SampleSettings& settings, const Partition& p, const Ids& seeds) {
    ThreadRanks(2).run([&](int rank, Channel& channel) {
      CooperativeSampler sampler(graph, settings, {}, rank == 0 ? partition : p, rank, channel);
      sampler.sample(rank == 0 ? seeds : Ids{}, 1);
    });
  };
  const auto refused = [&](const SampleSettings& settings, const Partition& p, const Ids& seeds) {
    return error_of([&] { sampled(settings, p, seeds); });
  };
  const SampleSettings good{.fanouts = {-1, -1}, .targets = HopTargets::all};
  sampled(good, partition, {0, 7});
  EXPECT_EQ(refused(good, partition, {0, 25}), "seed 25 is no vertex of rank 0");
  EXPECT_EQ(refused(good, partition, {0, 40}), "seed 40 is no vertex of rank 0");
  EXPECT_EQ(refused(good, partition, {3, 3}), "a seed is given twice");
  EXPECT_THAT(refused({.fanouts = {2, 2}}, partition, {}), testing::HasSubstr("not disjoint"));
  EXPECT_THAT(refused(good, partition_by_vertices(39, 2), {}), testing::HasSubstr("39 vertices"));
  EXPECT_THAT(refused(good, partition_by_vertices(40, 1), {}), testing::HasSubstr("rank 1"));
  EXPECT_THAT(refused(good, Partition::contiguous({0, 30, 40}), {0, 1, 2, 3, 4, 5, 6, 7, 8}),
              testing::MatchesRegex("rank 0 asks rank 1 for vertex 2., which is another rank's"));
}

}  // namespace
}  // namespace plait::test
