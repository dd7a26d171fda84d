#include "plait/apps/kcore.h"

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"

namespace plait {
namespace {

// Takes away one vertex of the fewest neighbours at a time.
std::vector<std::uint64_t> core_numbers(const std::vector<std::vector<std::uint64_t>>& lists) {
  std::vector<std::uint64_t> left, core(lists.size());
  std::vector<std::vector<std::uint64_t>> with;  // vertices by neighbours left, and some that had
  const auto put = [&](std::uint64_t v) {
    if (left[v] >= with.size()) with.resize(left[v] + 1);
    with[left[v]].push_back(v);
  };
  for (std::uint64_t v = 0; v < lists.size(); ++v) left.push_back(lists[v].size()), put(v);
  std::vector<bool> taken(lists.size());
  std::uint64_t most = 0;
  for (std::uint64_t k = 0; k < with.size();) {
    if (with[k].empty()) {
      ++k;
      continue;
    }
    const std::uint64_t v = with[k].back();
    with[k].pop_back();
    if (taken[v] || left[v] != k) continue;
    taken[v] = true;
    core[v] = most = std::max(most, k);
    for (const std::uint64_t u : lists[v])
      if (!taken[u]) --left[u], put(u);
    if (k > 0) --k;  // a neighbour may have one less now
  }
  return core;
}

void verify(const Dataset& dataset, const AppSettings&, const AppResult& result) {
  const auto& core = std::get<std::vector<std::int64_t>>(result.columns[0].values);
  const std::vector<std::uint64_t> expected = core_numbers(simple_neighbours(dataset));
  for (std::uint64_t v = 0; v < expected.size(); ++v)
    require<MismatchError>(static_cast<std::uint64_t>(core[v]) == expected[v],
                           "vertex {} has core number {}, not {}", v, core[v], expected[v]);
  const std::uint64_t most = expected.empty() ? 0 : std::ranges::max(expected);
  require_fact(result, "max_core", most);
  require_fact(result, "max_core_size",
               static_cast<std::uint64_t>(std::ranges::count(expected, most)));
}

}  // namespace

const App kKcore{.name = "kcore",
                 .summary = "Find for every vertex the greatest k of a k-core that it is in",
                 .options = {},
                 .columns = {{"core", true}},
                 .facts = {"max_core", "max_core_size"},
                 .check = [](const Dataset&, const AppSettings&) {},
                 .on_cpu = app_on_cpu<Kcore>,
                 .on_gpu = app_on_gpu<Kcore>,
                 .verify = verify,
                 .bytes = {.per_slot = 44}};

}  // namespace plait
