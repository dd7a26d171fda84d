#include "plait/sample/eligible_edges.h"

#include "plait/base/data_or_null.h"
#include "plait/base/parallel.h"
#include "plait/sample/seen_row.h"

namespace plait {

void eligible_edges(const AnyCsr& graph, const SampleValues& values, const HopByValues& drawn,
                    const EligibleArrays& to) {
  constexpr std::size_t kGrain = 1024;  // targets
  const ValuesView view{data_or_null(values.weights), data_or_null(values.edge_times),
                        data_or_null(values.vertex_times)};
  const Sample& sample = drawn.sample;
  const Sample::Hop& hop = drawn.hop;
  std::visit(
      [&]<VertexId V>(const Csr<V>& csr) {
        parallel_blocks(hop.targets(), kGrain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t t = begin; t < end; ++t) {
            const std::uint64_t number = hop.first_target + t, v = sample.vertices[number];
            const std::int64_t now = drawn.times.empty() ? 0 : drawn.times[sample.trees[number]];
            const SeenRow<V> row{view, csr.neighbours.data(), csr.offsets[v], now};
            std::uint64_t count = 0;
            double sum = 0;
            for (std::uint64_t p = 0; p < csr.degree(v); ++p)
              if (row.is_eligible(p)) {
                ++count;
                if (view.weights != nullptr) sum += double{row.weight(p)};
              }
            to.counts[t] = count;
            if (to.mean_weights != nullptr)
              to.mean_weights[t] = eligible::mean_weight(
                  sum, count, hop.offsets[t + 1] - hop.offsets[t], drawn.again);
          }
        });
      },
      graph);
}

}  // namespace plait
