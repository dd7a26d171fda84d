#include "plait/apps/triangles.h"

#include <numeric>

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"

namespace plait {
namespace {

void verify(const Dataset& dataset, const AppSettings&, const AppResult& result) {
  const auto& found = std::get<std::vector<std::int64_t>>(result.columns[0].values);
  const std::vector<std::vector<std::uint64_t>> lists = simple_neighbours(dataset);
  // Each triangle is met at the greatest of its vertices, v, and then at the next, u.
  std::vector<std::uint64_t> expected(lists.size());
  std::vector<char> near(lists.size());
  std::uint64_t pairs = 0;
  for (std::uint64_t v = 0; v < lists.size(); ++v) {
    for (const std::uint64_t u : lists[v]) near[u] = 1;
    for (const std::uint64_t u : lists[v]) {
      if (u > v) break;
      for (const std::uint64_t w : lists[u]) {
        if (w > u) break;
        if (near[w] != 0) ++expected[v], ++expected[u], ++expected[w];
      }
    }
    for (const std::uint64_t u : lists[v]) near[u] = 0;
    pairs += lists[v].empty() ? 0 : lists[v].size() * (lists[v].size() - 1) / 2;
  }
  for (std::uint64_t v = 0; v < expected.size(); ++v)
    require<MismatchError>(static_cast<std::uint64_t>(found[v]) == expected[v],
                           "vertex {} is in {} triangles, not {}", v, expected[v], found[v]);
  const std::uint64_t sum = std::accumulate(expected.begin(), expected.end(), std::uint64_t{0});
  require_fact(result, "triangles", sum / 3);
  require_fact(result, "most", expected.empty() ? 0 : std::ranges::max(expected));
  require_fact(result, "transitivity",
               pairs == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(pairs));
}

void check(const Dataset& dataset, const AppSettings&) {
  require<UsageError>(dataset.vertices() < kNoVertex,
                      "{} has {} vertices; triangles are counted in graphs of up to {}",
                      dataset.name, dataset.vertices(), kNoVertex - 1);
}

}  // namespace

const App kTriangles{
    .name = "triangles",
    .summary = "Count for every vertex the triangles that it is in, whichever way edges lead",
    .options = {},
    .columns = {{"per_vertex", true}},
    .facts = {"triangles", "most", "transitivity"},
    .check = check,
    .on_cpu = app_on_cpu<Triangles>,
    .on_gpu = app_on_gpu<Triangles>,
    .verify = verify,
    .bytes = {.per_slot = 44, .per_edge = 10, .per_lent_edge = 4}};

}  // namespace plait
