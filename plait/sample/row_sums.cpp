#include "plait/sample/row_sums.h"

#include "plait/base/parallel.h"
#include "plait/sample/check.h"

namespace plait {

Buffer<double> row_sums(const AnyCsr& graph, std::span<const float> weights) {
  constexpr std::size_t kGrain = std::size_t{1} << 14;
  const auto offsets = std::visit([](const auto& csr) { return csr.offsets.span(); }, graph);
  require_large_memory(weights.size() * sizeof(double), "sums of the weights of rows");
  Buffer<double> sums(weights.size());
  parallel_blocks(vertex_count(graph), kGrain, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (EdgeOffset e = offsets[i]; e < offsets[i + 1]; ++e) sums[e] = sum += double{weights[e]};
    }
  });
  return sums;
}

}  // namespace plait
