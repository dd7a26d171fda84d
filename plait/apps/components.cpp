#include "plait/apps/components.h"

#include <numeric>

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"

namespace plait {
namespace {

// Numbers 0, 1, ... in sets, each of which is known by its least number.
class Sets {
 public:
  explicit Sets(std::uint64_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::uint64_t{0});
  }
  std::uint64_t least(std::uint64_t i) {
    for (; parent_[i] != i; i = parent_[i]) parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint64_t a, std::uint64_t b) {
    a = least(a), b = least(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint64_t> parent_;
};

void verify(const Dataset& dataset, const AppSettings&, const AppResult& result) {
  const auto& found = std::get<std::vector<std::int64_t>>(result.columns[0].values);
  const std::vector<std::uint64_t> expected = components_reference(dataset);
  std::vector<std::uint64_t> sizes(expected.size());
  for (std::uint64_t v = 0; v < expected.size(); ++v) {
    require<MismatchError>(static_cast<std::uint64_t>(found[v]) == expected[v],
                           "vertex {} is in component {}, but is connected with vertex {}", v,
                           found[v], expected[v]);
    ++sizes[expected[v]];
  }
  require_fact(result, "components",
               sizes.size() - static_cast<std::uint64_t>(std::ranges::count(sizes, 0)));
  require_fact(result, "largest", sizes.empty() ? 0 : std::ranges::max(sizes));
}

}  // namespace

JoinedLabels::JoinedLabels(const std::vector<LabelPair>& pairs) {
  for (const auto& [a, b] : pairs) labels.push_back(a), labels.push_back(b);
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  Sets sets(labels.size());
  const auto place = [&](std::uint64_t label) {
    return static_cast<std::uint64_t>(std::ranges::lower_bound(labels, label) - labels.begin());
  };
  for (const auto& [a, b] : pairs) sets.join(place(a), place(b));
  for (std::uint64_t i = 0; i < labels.size(); ++i) least.push_back(labels[sets.least(i)]);
}

std::vector<std::uint64_t> components_reference(const Dataset& dataset) {
  Sets sets(dataset.vertices());
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v)
          for (const auto u : graph.row(v)) sets.join(dataset.number(v), dataset.number(u));
      },
      dataset.graph);
  std::vector<std::uint64_t> least(dataset.vertices());
  for (std::uint64_t number = 0; number < least.size(); ++number)
    least[number] = sets.least(number);
  return least;
}

const App kComponents{.name = "components",
                      .summary = "Find for every vertex the least vertex that it is connected with",
                      .options = {},
                      .columns = {{"component", true}},
                      .facts = {"components", "largest"},
                      .check = [](const Dataset&, const AppSettings&) {},
                      .on_cpu = app_on_cpu<Components>,
                      .on_gpu = app_on_gpu<Components>,
                      .verify = verify,
                      .slot_bytes = 64};

}  // namespace plait
