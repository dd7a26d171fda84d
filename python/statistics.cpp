// Statistics of a graph for Python: torch.ops.plait.graph_statistics.
#include "plait/graph/statistics.h"

#include <torch/library.h>

#include "plait/base/parallel.h"
#include "plait/graph/build.h"
#include "plait/graph/validate.h"
#include "plait/reorder/communities.h"
#include "plait/reorder/scattered.h"
#include "plait/world/launch.h"
#include "python/edge_tensors.h"
#include "python/operations.h"

namespace plait {
namespace {

using Numbers = c10::Dict<std::string, double>;

// Returns the numbers by the names that `plait info --json` gives them; numbers that take a search
// for communities only if they are asked for.
Numbers graph_statistics(const at::Tensor& edge_index, std::int64_t num_nodes, bool communities) {
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    const AnyCsr graph = build_csr(edge_list_of({edge_index, num_nodes, std::nullopt}));
    const DegreeStatistics degrees = degree_statistics(graph);
    const double span = averaged_edge_span(graph);
    Numbers numbers;
    numbers.insert("mean_degree", degrees.mean);
    numbers.insert("median_degree", static_cast<double>(degrees.median));
    numbers.insert("percentile_99_degree", static_cast<double>(degrees.percentile_99));
    numbers.insert("largest_degree", static_cast<double>(degrees.largest));
    numbers.insert("isolated", static_cast<double>(degrees.without_edges));
    numbers.insert("top_percent_share", degrees.top_percent_share);
    numbers.insert("averaged_edge_span", span);
    if (communities) {
      numbers.insert("scattered", is_scattered({graph, is_symmetric(graph)}));
      const CommunityStatistics found = community_statistics(graph, is_symmetric(graph));
      numbers.insert("communities", static_cast<double>(found.communities));
      numbers.insert("largest_community", static_cast<double>(found.largest));
      numbers.insert("inner_edges", found.inner_edges);
      numbers.insert("modularity", found.modularity);
    }
    return numbers;
  });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) { m.def("graph_statistics", &graph_statistics); }

}  // namespace plait
