// A graph of more than 2^31 edges, without the memory for one: its neighbour list is a mapping that
// is never written, so that all of it is one page of zeros. Every row lists vertex 0.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "plait/graph/validate.h"
#include "plait/kernels/spmm.h"
#include "plait/partition/quality.h"

namespace plait {
namespace {

constexpr std::uint64_t kRows = 70'000, kDegree = 32'768;
constexpr std::uint64_t kEdges = kRows * kDegree;
static_assert(kEdges > std::uint64_t{1} << 31);

Array<std::uint32_t> zeros(std::uint64_t count) {
  const std::size_t bytes = count * sizeof(std::uint32_t);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::shared_ptr<const void> owner(memory, [bytes](void* p) { munmap(p, bytes); });
  return {owner, {static_cast<const std::uint32_t*>(memory), count}};
}

Csr32 large_graph() {
  Buffer<EdgeOffset> offsets(kRows + 1);
  for (std::uint64_t i = 0; i <= kRows; ++i) offsets[i] = i * kDegree;
  return {std::move(offsets), zeros(kEdges), {}};
}

TEST(MoreThan2To31Edges, IsCutEvenly) {
  const AnyCsr graph = large_graph();
  ASSERT_EQ(edge_count(graph), 2'293'760'000u);
  const Partition partition = partition_by_edges(graph, 3);
  for (int part = 0; part < 3; ++part)
    EXPECT_NEAR(static_cast<double>(partition.size(part)), kRows / 3.0, 1);
  const PartitionQuality quality = measure_partition(graph, partition);
  EXPECT_EQ(quality.parts[0].remote_edges, 0u);
  EXPECT_EQ(quality.cut(), kEdges - partition.size(0) * kDegree);
  EXPECT_EQ(quality.parts[2].halo_rows, 1u);
}

TEST(MoreThan2To31Edges, IsValidated) {
  Dataset dataset;
  dataset.graph = large_graph();
  EXPECT_NO_THROW(validate(dataset, "large"));
}

TEST(MoreThan2To31Edges, IsSummedToTheLast) {
  const Csr32 graph = large_graph();
  const float x = 1;
  std::vector<float> y(kRows, -1);
  spmm({.begin = graph.offsets.span().first(kRows),
        .end = graph.offsets.span().subspan(1),
        .columns = graph.neighbours.data(),
        .x = {.base = &x, .stride = 1},
        .width = 1,
        .y = y.data(),
        .y_stride = 1});
  for (std::uint64_t i = 0; i < kRows; ++i) ASSERT_EQ(y[i], kDegree) << i;
}

}  // namespace
}  // namespace plait
