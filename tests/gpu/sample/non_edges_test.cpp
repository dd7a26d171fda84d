// Pairs that are no edges, drawn on the GPU: the same pairs as on the CPU.
#include "plait/sample/cuda/non_edges.h"

#include <gtest/gtest.h>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using Pairs = std::vector<NonEdges::Pair>;

Pairs gpu_pairs(const GpuNonEdges& pairs, const GpuNonEdges::Draw& draw) {
  DeviceArray<std::uint64_t> rows(draw.count + 1), columns(draw.count + 1);
  pairs.draw(draw, rows.data(), columns.data(), nullptr);
  check_cuda(cudaDeviceSynchronize(), "the pairs");
  const auto rows_here = rows.to_host(), columns_here = columns.to_host();
  Pairs found;
  for (std::uint64_t i = 0; i < draw.count; ++i) found.push_back({rows_here[i], columns_here[i]});
  return found;
}

// Graphs whose rows are sorted, with loops and parallel edges; and none, and one of all edges.
std::vector<Csr32> graphs() {
  std::vector<Csr32> graphs;
  using Size = std::pair<std::uint64_t, std::uint64_t>;
  for (const auto& [vertices, edges] :
       std::vector<Size>{{1, 0}, {1, 1}, {3, 40}, {40, 300}, {500, 4000}, {3000, 9}})
    graphs.push_back(test::random_csr<std::uint32_t>(vertices, edges, 3));
  return graphs;
}

TEST(NonEdgesCuda, PairsAreThoseOfTheCpu) {
  std::uint64_t key = 0, drawn = 0;
  for (const Csr32& graph : graphs())
    for (const PairKind kind : {PairKind::all, PairKind::no_loops, PairKind::ascending}) {
      const std::uint64_t n = graph.vertices();
      const NonEdges pairs(graph, n, n, kind);
      const GpuNonEdges there(pairs);
      for (const std::uint64_t wanted :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{1000},
            std::max<std::uint64_t>(pairs.count(), 1) - 1, pairs.count(), pairs.count() + 5})
        for (const bool replace : {false, true}) {
          if (wanted > 1'000'000) continue;
          SCOPED_TRACE(testing::Message() << n << " vertices, " << wanted << " pairs");
          const auto here = pairs.draw(wanted, replace, ++key);
          const std::uint64_t count = pairs.drawn(wanted, replace);
          ASSERT_EQ(here.size(), count);
          const Pairs found = gpu_pairs(there, {count, replace, key});
          ASSERT_EQ(found, Pairs(here.begin(), here.end()));
          drawn += count;
        }
    }
  EXPECT_GT(drawn, 100'000u);
}

TEST(NonEdgesCuda, ColumnsAreThoseOfTheCpu) {
  const Csr32 graph = test::random_csr<std::uint32_t>(500, 4000, 3);
  const NonEdges pairs(graph, 500, 500, PairKind::no_loops);
  const GpuNonEdges there(pairs);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t i = 0; i < 10'000; ++i) rows.push_back(i * 7 % 500);
  const DeviceArray<std::uint64_t> rows_there{std::span<const std::uint64_t>(rows)};
  DeviceArray<std::uint64_t> columns(rows.size());
  there.draw_columns(rows_there.data(), rows.size(), 9, columns.data(), nullptr);
  const auto wanted = pairs.draw_columns(rows, 9);
  EXPECT_EQ(columns.to_host(), std::vector<std::uint64_t>(wanted.begin(), wanted.end()));
}

TEST(NonEdgesCuda, RefusesRowsAsTheCpu) {
  const Csr32 graph{std::vector<EdgeOffset>{0, 2, 2}, std::vector<std::uint32_t>{0, 1}, {}};
  const NonEdges pairs(graph, 2, 2, PairKind::all);
  const GpuNonEdges there(pairs);
  for (const std::vector<std::uint64_t>& rows :
       std::vector<std::vector<std::uint64_t>>{{1, 0, 0}, {1, 1, 2, 0, 9}, {~std::uint64_t{0}}}) {
    const DeviceArray<std::uint64_t> rows_there{std::span<const std::uint64_t>(rows)};
    DeviceArray<std::uint64_t> columns(rows.size());
    const auto error = error_of(
        [&] { there.draw_columns(rows_there.data(), rows.size(), 9, columns.data(), nullptr); });
    EXPECT_FALSE(error.empty());
    EXPECT_EQ(error, error_of([&] { pairs.draw_columns(rows, 9); }));
  }
}

}  // namespace
}  // namespace plait
