#include <algorithm>
#include <numeric>

#include "plait/graph/build.h"
#include "plait/reorder/methods.h"

namespace plait {
namespace {

// Searches of a graph whose edges count in both directions.
template <VertexId V>
class CuthillMcKee {
 public:
  CuthillMcKee(const Csr<V>& graph, bool symmetric)
      : out_(graph), back_(symmetric ? Csr<V>{} : transpose(graph)), seen_(graph.vertices()) {
    order_.reserve(graph.vertices());
  }

  // Returns all vertices, component by component, in the order of the search.
  std::vector<V> run() {
    std::vector<V> starts(out_.vertices());
    std::iota(starts.begin(), starts.end(), V{0});
    std::ranges::stable_sort(starts, {}, [&](V v) { return degree(v); });
    for (const V start : starts)
      if (seen_[start] == 0) {
        const V root = far_end(start);
        search(root, kDone, true);
      }
    return std::move(order_);
  }

 private:
  static constexpr std::uint32_t kDone = ~std::uint32_t{0};

  // The last vertices of a breadth-first search: those farthest from its root.
  struct Search {
    std::uint64_t depth = 0;
    V farthest{};  // of the last level, one of the least degree
  };

  EdgeOffset degree(V v) const {
    return out_.degree(v) + (back_.offsets.empty() ? 0 : back_.degree(v));
  }

  // Marks what it reaches with `mark`, a number that no vertex reached has, and appends it to the
  // order. Unless it is `kept`, the order forgets it.
  Search search(V root, std::uint32_t mark, bool kept) {
    const std::size_t begin = order_.size();
    Search found;
    order_.push_back(root);
    seen_[root] = mark;
    std::size_t level_end = order_.size(), level_begin = begin;
    for (std::size_t at = begin; at < order_.size(); ++at) {
      if (at == level_end) level_begin = at, level_end = order_.size(), ++found.depth;
      const std::size_t first = order_.size();
      const auto visit = [&](const Csr<V>& rows) {
        for (const V u : rows.row(order_at(at)))
          if (seen_[u] != mark) seen_[u] = mark, order_.push_back(u);
      };
      visit(out_);
      if (!back_.offsets.empty()) visit(back_);
      if (kept)
        std::sort(order_.begin() + static_cast<std::ptrdiff_t>(first), order_.end(),
                  [&](V a, V b) { return std::pair(degree(a), a) < std::pair(degree(b), b); });
    }
    found.farthest = *std::min_element(
        order_.begin() + static_cast<std::ptrdiff_t>(level_begin), order_.end(),
        [&](V a, V b) { return std::pair(degree(a), a) < std::pair(degree(b), b); });
    if (!kept) order_.resize(begin);
    return found;
  }
  V order_at(std::size_t i) const { return order_[i]; }

  // Returns a vertex from which the search is about as deep as it can be.
  V far_end(V start) {
    V root = start;
    std::uint64_t depth = 0;
    for (std::uint32_t mark = 1; mark <= kMostSearches; ++mark) {
      const Search found = search(root, mark, false);
      if (mark > 1 && found.depth <= depth) break;
      depth = found.depth;
      root = found.farthest;
    }
    return root;
  }
  static constexpr std::uint32_t kMostSearches = 8;

  const Csr<V>& out_;
  const Csr<V> back_;  // the edges turned round; without rows if the graph is symmetric
  std::vector<std::uint32_t> seen_;  // mark of the last search that reached each vertex
  std::vector<V> order_;
};

}  // namespace

Reordering order_by_rcm(const ReorderInput& input) {
  return std::visit(
      [&]<class Graph>(const Graph& graph) {
        const auto order = CuthillMcKee<typename Graph::Vertex>(graph, input.symmetric).run();
        Reordering found{.order = Buffer<std::uint64_t>(order.size())};
        std::ranges::copy(order.rbegin(), order.rend(), found.order.begin());
        return found;
      },
      input.graph);
}

}  // namespace plait
