#include <atomic>
#include <limits>

#include "plait/base/parallel.h"
#include "plait/reorder/methods.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 16;
constexpr EdgeOffset kNowhere = std::numeric_limits<EdgeOffset>::max();

// Returns the first place of each vertex in a list.
template <VertexId V>
std::vector<EdgeOffset> first_places(std::span<const V> list, std::uint64_t vertices) {
  std::vector<EdgeOffset> first(vertices, kNowhere);
  parallel_blocks(list.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    for (EdgeOffset e = begin; e < end; ++e) {
      const std::atomic_ref<EdgeOffset> place(first[list[e]]);
      EdgeOffset seen = place.load(std::memory_order_relaxed);
      while (e < seen && !place.compare_exchange_weak(seen, e, std::memory_order_relaxed)) {
      }
    }
  });
  return first;
}

}  // namespace

Reordering order_by_boba(const ReorderInput& input) {
  return std::visit(
      [](const auto& graph) {
        const auto list = graph.neighbours.span();
        const std::vector<EdgeOffset> first = first_places(list, graph.vertices());
        const std::size_t blocks = (list.size() + kGrain - 1) / kGrain;
        std::vector<std::uint64_t> begin(blocks + 1);  // of each block's vertices in the order
        const auto each_first = [&](std::size_t from, std::size_t to, auto&& take) {
          for (EdgeOffset e = from; e < to; ++e)
            if (first[list[e]] == e) take(list[e]);
        };
        parallel_blocks(list.size(), kGrain, [&](std::size_t from, std::size_t to) {
          each_first(from, to, [&](std::uint64_t) { ++begin[from / kGrain + 1]; });
        });
        for (std::size_t b = 0; b < blocks; ++b) begin[b + 1] += begin[b];
        Reordering found{.order = Buffer<std::uint64_t>(graph.vertices())};
        parallel_blocks(list.size(), kGrain, [&](std::size_t from, std::size_t to) {
          std::uint64_t at = begin[from / kGrain];
          each_first(from, to, [&](std::uint64_t v) { found.order[at++] = v; });
        });
        std::uint64_t at = begin[blocks];
        for (std::uint64_t v = 0; v < first.size(); ++v)
          if (first[v] == kNowhere) found.order[at++] = v;
        return found;
      },
      input.graph);
}

}  // namespace plait
