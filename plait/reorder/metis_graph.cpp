#include "plait/reorder/metis_graph.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <numeric>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/memory.h"

namespace plait {
namespace {

template <VertexId V>
MetisGraph copy_of(const Csr<V>& graph, const std::string& remedy) {
  const std::uint64_t n = graph.vertices();
  require(n < kMetisVertices && graph.edges() < kMetisEdges,
          "METIS takes fewer than {} vertices and {} edges, but the graph has {} and {}; {}",
          kMetisVertices, kMetisEdges, n, graph.edges(), remedy);
  require_memory((2 * graph.edges() + 2 * n) * sizeof(idx_t), "the graph's copy for METIS");

  const auto each_edge = [&](auto&& take) {
    for (std::uint64_t i = 0; i < n; ++i)
      for (const V j : graph.row(i))
        if (j != i) take(i, std::uint64_t{j});
  };
  MetisGraph copy{Buffer<idx_t>(n + 1, 0), {}, Buffer<idx_t>(n), {}};
  each_edge([&](std::uint64_t i, std::uint64_t j) {
    ++copy.offsets[i + 1];
    ++copy.offsets[j + 1];
  });
  for (std::uint64_t i = 0; i < n; ++i) copy.offsets[i + 1] += copy.offsets[i];
  copy.neighbours = Buffer<idx_t>(static_cast<std::size_t>(copy.offsets[n]));
  std::vector<idx_t> cursor(copy.offsets.begin(), copy.offsets.end() - 1);
  each_edge([&](std::uint64_t i, std::uint64_t j) {
    copy.neighbours[static_cast<std::size_t>(cursor[i]++)] = static_cast<idx_t>(j);
    copy.neighbours[static_cast<std::size_t>(cursor[j]++)] = static_cast<idx_t>(i);
  });
  for (std::uint64_t i = 0; i < n; ++i)
    copy.vertex_weights[i] = static_cast<idx_t>(graph.degree(i) + 1);
  return copy;
}

// Returns the weights, fewer than 2^30, divided by the power of two with which their sum is below
// 2^30, and at least 1. So the sum is below 2^31.
Buffer<idx_t> scaled(std::span<const std::uint64_t> weights) {
  const std::uint64_t sum = std::reduce(weights.begin(), weights.end());
  const int shift = std::max(0, static_cast<int>(std::bit_width(sum)) - 30);
  Buffer<idx_t> all(weights.size());
  std::ranges::transform(weights, all.begin(), [&](std::uint64_t weight) {
    return static_cast<idx_t>(std::max<std::uint64_t>(weight >> shift, 1));
  });
  return all;
}

}  // namespace

MetisGraph metis_graph(const Quotient& quotient, std::span<const std::uint64_t> work,
                       const std::string& remedy) {
  const std::uint64_t ends = quotient.neighbours.size();
  require(
      quotient.communities() < kMetisEdges && ends < kMetisEdges,
      "METIS takes fewer than {} clusters and half as many edges between them, but the graph has "
      "{} and {}; {}",
      kMetisEdges, quotient.communities(), ends / 2, remedy);
  require_memory((2 * ends + 2 * work.size()) * sizeof(idx_t), "the communities' copy for METIS");
  MetisGraph graph{Buffer<idx_t>(quotient.offsets.size()), Buffer<idx_t>(ends), scaled(work),
                   scaled(quotient.weights.span())};
  std::ranges::copy(quotient.offsets, graph.offsets.begin());
  std::ranges::copy(quotient.neighbours, graph.neighbours.begin());
  return graph;
}

MetisGraph metis_graph(const AnyCsr& any, const std::string& remedy) {
  return std::visit([&](const auto& graph) { return copy_of(graph, remedy); }, any);
}

namespace {

// While it lives, what C prints to stdout goes nowhere: METIS prints remarks on graphs that it can
// hardly cut, and stdout is for results. The descriptor stays as it is, for other languages.
class NoRemarks {
 public:
  NoRemarks() : before_(stdout), nowhere_(std::fopen("/dev/null", "w")) {
    if (nowhere_ != nullptr) stdout = nowhere_;
  }
  ~NoRemarks() {
    stdout = before_;
    if (nowhere_ != nullptr) std::fclose(nowhere_);
  }
  NoRemarks(const NoRemarks&) = delete;
  NoRemarks& operator=(const NoRemarks&) = delete;

 private:
  std::FILE *before_, *nowhere_;
};

}  // namespace

Buffer<idx_t> metis_parts(MetisPartition partition, MetisGraph graph, std::uint64_t parts,
                          std::uint64_t seed) {
  auto n = static_cast<idx_t>(graph.vertex_weights.size()), constraints = idx_t{1};
  auto k = static_cast<idx_t>(parts);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed & 0x7fffffff);
  idx_t cut = 0;
  Buffer<idx_t> part(graph.vertex_weights.size());
  const NoRemarks quiet;
  const int status = partition(&n, &constraints, graph.offsets.data(), graph.neighbours.data(),
                               graph.vertex_weights.data(), nullptr, graph.edge_weights.data(), &k,
                               nullptr, nullptr, options, &cut, part.data());
  require<DoesNotFitError>(status != METIS_ERROR_MEMORY,
                           "METIS has not enough memory for {} vertices", n);
  require(status == METIS_OK, "METIS failed with status {} on {} vertices in {} parts", status, n,
          parts);
  return part;
}

}  // namespace plait
