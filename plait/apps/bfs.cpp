#include "plait/apps/bfs.h"

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"

namespace plait {
namespace {

void check(const Dataset& dataset, const AppSettings& settings) {
  require_vertex(dataset, settings.get<std::uint64_t>("source"));
}

// Every edge leads at most one step further, and every vertex has the least of the vertices at the
// step before that lead to it: then depths are least, and parents are what is promised.
void verify(const Dataset& dataset, const AppSettings& settings, const AppResult& result) {
  const auto source = settings.get<std::uint64_t>("source");
  const auto& depth = std::get<std::vector<std::int64_t>>(result.columns[0].values);
  const auto& parent = std::get<std::vector<std::int64_t>>(result.columns[1].values);
  std::uint64_t reached = 0;
  std::int64_t deepest = 0;
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
          const std::uint64_t number = dataset.number(v);
          // The depth and the parent that the vertices before it give.
          std::int64_t least = number == source ? 0 : -1, before = -1;
          if (number == source) before = static_cast<std::int64_t>(source);
          for (const auto u : graph.row(v)) {
            const std::uint64_t other = dataset.number(u);
            if (depth[other] < 0 || number == source) continue;
            const std::int64_t here = depth[other] + 1, its = static_cast<std::int64_t>(other);
            if (least < 0 || here < least)
              least = here, before = its;
            else if (here == least)
              before = std::min(before, its);
          }
          require<MismatchError>(
              depth[number] == least && parent[number] == before,
              "vertex {} has depth {} and parent {}, but vertices that lead to it give it depth {} "
              "and parent {}",
              number, depth[number], parent[number], least, before);
          reached += least >= 0;
          deepest = std::max(deepest, least);
        }
      },
      dataset.graph);
  require_fact(result, "reached", reached);
  require_fact(result, "depth", static_cast<std::uint64_t>(deepest));
}

}  // namespace

const App kBfs{
    .name = "bfs",
    .summary = "Find for every vertex the fewest edges of a path from a source",
    .options =
        {{.name = "source",
          .help =
              "Vertex from which paths begin; ids of an edge list are numbered from 0, ascending",
          .standard = std::uint64_t{0}}},
    .columns = {{"distance", true}, {"parent", true}},
    .facts = {"source", "reached", "depth"},
    .check = check,
    .on_cpu = app_on_cpu<Bfs>,
    .on_gpu = app_on_gpu<Bfs>,
    .verify = verify,
    .bytes = {.per_slot = 56}};

}  // namespace plait
