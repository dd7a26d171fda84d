// The strategy `get` against the reference, on one GPU (get_case.h).
#include "plait/kernels/cuda/get.cuh"

#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/graph/generate.h"
#include "plait/graph/shapes.h"
#include "tests/gpu/get_case.h"

namespace plait {
namespace {

using namespace test::get;

void check(const Csr32& graph, const Case& c, unsigned seed = 1) {
  const Part part = part_of(graph, c);
  const Values values = make_values(graph, c, seed);
  EXPECT_EQ(on_gpu(c, part, values), expected(c, part, values)) << c;
}

const Csr32& random_graph() {
  static const Csr32 graph = test::random_csr<std::uint32_t>(200, 4000, 3, true);
  return graph;
}

TEST(GetCuda, AllWidths) {
  for (std::uint64_t width = 1; width <= 130; ++width)
    for (const bool asynchronous : {false, true}) {
      const Case c{.width = width, .asynchronous = asynchronous, .weighted = width % 2 == 0};
      check(random_graph(), c);
      Case padded = c;
      padded.padding = 4 - width % 4;  // rows at multiples of 16 bytes
      check(random_graph(), padded);
    }
  for (const std::uint64_t width : {256, 602, 1000, 1023, 1024})
    check(random_graph(), {.width = width});
}

TEST(GetCuda, AllParameters) {
  for (const std::uint32_t ps : {1, 2, 3, 8, 15, 16, 31, 32})
    for (const std::uint32_t dist : {1, 2, 7, 16})
      for (const std::uint32_t wpb : {1, 3, 16})
        for (const bool asynchronous : {false, true})
          check(random_graph(), {.width = ps * 4 % 52 + 4,
                                 .ps = ps,
                                 .dist = dist,
                                 .wpb = wpb,
                                 .asynchronous = asynchronous,
                                 .deterministic = (ps + dist) % 2 == 0,
                                 .rank = 2});
}

// Every way of reading, with groups of all sizes, on rows with few and with very many edges, on
// ranks that have only remote edges, and none.
TEST(GetCuda, AllWaysOfReading) {
  const auto csr = [](AnyEdgeList edges) { return std::get<Csr32>(build_csr(std::move(edges))); };
  const Csr32 hubs = csr(generate_star(3000));
  const Csr32 dense = test::random_csr<std::uint32_t>(150, 40000, 7, true);  // 267 per row
  const Csr32 sparse = test::random_csr<std::uint32_t>(300, 900, 8, true);   // rows without edges
  const std::uint32_t none = GetTuning::kWholeRow;
  unsigned number = 0;
  for (const Csr32* graph : {&hubs, &dense, &sparse})
    for (const std::uint64_t width : {1, 3, 20, 33, 64, 100, 128, 300})
      for (const std::uint32_t ps : {1u, 7u, 32u, 33u, 100u, 512u, none})
        for (const ReadBy read_by : kReaders)
          for (int bits = 0; bits < 8; ++bits) {
            const unsigned n = number++;
            check(*graph, {.width = width,
                           .ps = ps,
                           .dist = 1 + n % 5,
                           .wpb = 1 + n / 3 % 7,
                           .asynchronous = (bits & 1) != 0,
                           .deterministic = (bits & 2) != 0,
                           .remote_ps = n % 4 == 0   ? 3u
                                        : n % 4 == 1 ? 40u
                                                     : 0u,
                           .interleave = (bits & 4) != 0,
                           .read_by = read_by,
                           .weighted = n % 3 == 0,
                           .scaled = n % 5 == 0,
                           .accumulate = n % 7 == 0,
                           .padding = n % 2 == 0 ? (width + 3) / 4 * 4 - width : 0,
                           .rank = static_cast<int>(n % 2 * 3),
                           .keep = n % 11 == 0   ? Keep::remote
                                   : n % 11 == 1 ? Keep::local
                                                 : Keep::all});
          }
}

// Fewer lanes than the row has pieces, and more; groups that fit a warp, and longer ones.
TEST(GetCuda, AllDimensionWorkers) {
  unsigned number = 0;
  for (const std::uint64_t width : {1, 2, 5, 16, 33, 64, 100, 130})
    for (const std::uint32_t dw : {1u, 2u, 4u, 8u, 16u, 32u})
      for (const std::uint32_t ps : {1u, 16u, 32u, 100u})
        for (const ReadBy read_by : kReaders)
          for (const bool asynchronous : {false, true}) {
            if (dw < GetTuning::kLeastLanes && read_by != ReadBy::warp) continue;
            const unsigned n = number++;
            check(random_graph(), {.width = width,
                                   .ps = ps,
                                   .asynchronous = asynchronous,
                                   .deterministic = n / 2 % 2 == 0,
                                   .read_by = read_by,
                                   .dw = dw,
                                   .weighted = n % 3 == 0,
                                   .scaled = n % 5 == 0,
                                   .padding = n / 4 % 2 == 0 ? (width + 3) / 4 * 4 - width : 0});
          }
}

TEST(GetCuda, RefusesRowsOfTooManySlices) {
  EXPECT_THROW(check(random_graph(), {.width = 65537, .dw = 1}), UsageError);
}

TEST(GetCuda, AllBlocksThatFit) {
  for (const ReadBy read_by : kReaders)
    for (const std::uint32_t wpb : {1, 2, 15, 16})
      for (const std::uint32_t dist : {1, 16})
        for (const bool interleave : {false, true})
          check(random_graph(), {.width = 64,
                                 .ps = 100,
                                 .dist = dist,
                                 .wpb = wpb,
                                 .remote_ps = 5,
                                 .interleave = interleave,
                                 .read_by = read_by});
}

TEST(GetCuda, WeightedScaledAccumulatedPaddedAndSorted) {
  for (const std::uint64_t width : {1, 6, 16, 37, 64, 130})
    for (int bits = 0; bits < 64; ++bits) {
      const auto bit = [&](int k) { return (bits >> k & 1) != 0; };
      check(random_graph(), {.width = width,
                             .ps = bit(4) ? 5u : 32u,
                             .asynchronous = bit(5),
                             .deterministic = bit(3),
                             .weighted = bit(0),
                             .scaled = bit(1),
                             .accumulate = bit(2),
                             .clusters = bit(4),
                             .padding = bit(3) == bit(4) ? 16 - width % 8 : 0,
                             .offset = bit(4) && bit(0) ? 1u : 0u});
    }
}

TEST(GetCuda, AllRanks) {
  for (const int ranks : {1, 2, 3, 8, 64})
    for (int rank = 0; rank < ranks; rank += 1 + ranks / 8)
      for (const bool deterministic : {false, true})
        check(random_graph(),
              {.width = 20, .deterministic = deterministic, .ranks = ranks, .rank = rank});
}

TEST(GetCuda, OddGraphs) {
  const auto csr = [](AnyEdgeList edges) { return std::get<Csr32>(build_csr(std::move(edges))); };
  const Csr32 star = csr(generate_star(3000)), ring = csr(generate_ring(100));
  const Csr32 sparse = test::random_csr<std::uint32_t>(700, 300, 2);  // most rows are empty
  const Csr32 none = test::random_csr<std::uint32_t>(50, 0, 1);
  const Csr32 one = test::random_csr<std::uint32_t>(1, 40, 1, true);  // ranks without rows
  const Csr32 empty = test::random_csr<std::uint32_t>(0, 0, 1);
  for (int bits = 0; bits < 8; ++bits)
    for (const std::uint64_t width : {1, 24, 70}) {
      Case c{.width = width,
             .ps = (bits & 4) != 0 ? 2u : 32u,
             .asynchronous = (bits & 1) != 0,
             .deterministic = (bits & 2) != 0};
      for (const int rank : {0, 3}) {
        c.rank = rank;
        for (const Csr32* graph : {&star, &ring, &sparse, &none, &one, &empty}) check(*graph, c);
      }
      for (const Keep keep : {Keep::local, Keep::remote}) {
        c.keep = keep;
        check(random_graph(), c);
      }
    }
  check(random_graph(), {.width = 0});
}

// Values are not exact. With partial sums, no bit changes in a second run, nor with the way in
// which work is dealt to warps or rows are read.
void expect_same_bits(const Csr32& graph, std::uint32_t ps) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Case c{.width = 48, .ps = ps, .weighted = true};
  const Part part = part_of(graph, c);
  Values values = make_values(graph, c, 1);
  for (auto& rows : values.x)
    for (float& value : rows) value = uniform(random);
  const std::vector<float> first = on_gpu(c, part, values);
  for (unsigned run = 1; run < 100; ++run) {
    c.asynchronous = run % 2 == 1;
    c.dist = 1 + run % 16;
    c.wpb = 1 + run / 3 % 16;
    c.clusters = run % 5 == 0;
    c.interleave = run % 7 != 0;
    c.read_by = kReaders[run % 3];
    ASSERT_EQ(on_gpu(c, part, values), first) << c;
  }
}

TEST(GetCuda, SameBitsInHundredRuns) {
  const Csr32 graph = test::random_csr<std::uint32_t>(200, 30000, 5, true);
  for (const std::uint32_t ps : {8u, 100u, GetTuning::kWholeRow}) expect_same_bits(graph, ps);
}

TEST(GetCuda, RefusesParametersOutOfRange) {
  EXPECT_THROW(check(random_graph(), {.ps = 0}), UsageError);
  EXPECT_THROW(check(random_graph(), {.ps = 513}), UsageError);
  EXPECT_THROW(check(random_graph(), {.remote_ps = 513}), UsageError);
  EXPECT_THROW(check(random_graph(), {.dist = 0}), UsageError);
  EXPECT_THROW(check(random_graph(), {.dist = 17}), UsageError);
  EXPECT_THROW(check(random_graph(), {.wpb = 0}), UsageError);
  EXPECT_THROW(check(random_graph(), {.wpb = 17}), UsageError);
  EXPECT_THROW(check(random_graph(), {.ranks = 65}), UsageError);
}

}  // namespace
}  // namespace plait
