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

// The strongly connected components of the vertices by number (Tarjan, "Depth-first search and
// linear graph algorithms", SIAM Journal on Computing 1, 1972), with a stack of its own for calls.
class Tarjan {
 public:
  explicit Tarjan(std::vector<std::vector<std::uint64_t>> outward)
      : outward_(std::move(outward)),
        order_(outward_.size()),
        low_(outward_.size()),
        least_(outward_.size(), kNone) {
    for (std::uint64_t v = 0; v < outward_.size(); ++v)
      if (order_[v] == 0) visit(v);
  }
  // The least vertex of each vertex's component.
  std::vector<std::uint64_t> least() && { return std::move(least_); }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Call {
    std::uint64_t vertex;
    std::size_t edge = 0;
  };

  void visit(std::uint64_t root) {
    std::vector<Call> calls;
    const auto call = [&](std::uint64_t v) {
      order_[v] = low_[v] = ++visited_;
      open_.push_back(v);
      calls.push_back({v});
    };
    call(root);
    while (!calls.empty()) {
      const std::uint64_t v = calls.back().vertex;
      if (calls.back().edge < outward_[v].size()) {
        const std::uint64_t to = outward_[v][calls.back().edge++];
        if (order_[to] == 0)
          call(to);
        else if (least_[to] == kNone)
          low_[v] = std::min(low_[v], order_[to]);
        continue;
      }
      calls.pop_back();
      if (!calls.empty()) low_[calls.back().vertex] = std::min(low_[calls.back().vertex], low_[v]);
      if (low_[v] == order_[v]) close(v);
    }
  }
  // Closes the component of which v was visited first.
  void close(std::uint64_t v) {
    const auto begin = std::ranges::find(open_.rbegin(), open_.rend(), v).base() - 1;
    const std::uint64_t least = *std::min_element(begin, open_.end());
    for (auto at = begin; at != open_.end(); ++at) least_[*at] = least;
    open_.erase(begin, open_.end());
  }

  const std::vector<std::vector<std::uint64_t>> outward_;
  std::vector<std::uint64_t> order_, low_, least_;  // order_: of visits, from 1; 0: not yet
  std::vector<std::uint64_t> open_;                 // visited vertices without a component
  std::uint64_t visited_ = 0;
};

void verify(const Dataset& dataset, const AppSettings& settings, const AppResult& result) {
  const auto& found = std::get<std::vector<std::int64_t>>(result.columns[0].values);
  const std::vector<std::uint64_t> expected = settings.get<bool>("strong")
                                                  ? strong_components_reference(dataset)
                                                  : components_reference(dataset);
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

std::vector<std::uint64_t> strong_components_reference(const Dataset& dataset) {
  std::vector<std::vector<std::uint64_t>> outward(dataset.vertices());
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v)
          for (const auto u : graph.row(v)) outward[dataset.number(u)].push_back(dataset.number(v));
      },
      dataset.graph);
  return Tarjan(std::move(outward)).least();
}

std::vector<ComponentPart> joined_parts(World& world, std::vector<ComponentPart> mine) {
  const auto join = [](std::vector<ComponentPart>& parts) {
    std::ranges::sort(parts, {}, &ComponentPart::part);
    std::size_t count = 0;
    for (const ComponentPart& part : parts)
      if (count == 0 || parts[count - 1].part != part.part)
        parts[count++] = part;
      else
        parts[count - 1] = {part.part, std::min(parts[count - 1].least, part.least),
                            parts[count - 1].size + part.size};
    parts.resize(count);
  };
  join(mine);
  if (world.size() == 1) return mine;
  std::vector<ComponentPart> all = gather_joined(world, mine);
  join(all);
  return all;
}

const App kComponents{.name = "components",
                      .summary = "Find for every vertex the least vertex that it is connected with",
                      .options = {{.name = "strong",
                                   .help = "Strongly connected components: of vertices that reach "
                                           "each other along edges in their direction",
                                   .standard = false,
                                   .bytes = {.per_slot = 80}}},
                      .columns = {{"component", true}},
                      .facts = {"components", "largest"},
                      .check = [](const Dataset&, const AppSettings&) {},
                      .on_cpu = app_on_cpu<Components>,
                      .on_gpu = app_on_gpu<Components>,
                      .verify = verify,
                      .bytes = {.per_slot = 64}};

}  // namespace plait
