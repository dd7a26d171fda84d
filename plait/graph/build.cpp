#include "plait/graph/build.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/row_grain.h"
#include "plait/base/saturating.h"

namespace plait {
namespace {

constexpr std::size_t kEdgeGrain = std::size_t{1} << 18;

// The edges that the options ask for, numbered 0 .. count() - 1: the given edges and, when the
// graph is to be undirected, their reverses after them.
template <VertexId V>
class EdgeView {
 public:
  EdgeView(const EdgeList<V>& edges, const BuildOptions& options)
      : edges_(edges), undirected_(options.undirected), drop_loops_(options.drop_loops) {}

  std::uint64_t count() const { return edges_.edges() * (undirected_ ? 2 : 1); }
  V target(std::uint64_t e) const {
    return reversed(e) ? edges_.source[given(e)] : edges_.target[e];
  }
  V source(std::uint64_t e) const {
    return reversed(e) ? edges_.target[given(e)] : edges_.source[e];
  }
  float weight(std::uint64_t e) const { return edges_.weight[given(e)]; }
  // Loops are dropped if the options ask for it. The reverse of a loop is always dropped, since
  // it is the loop itself.
  bool kept(std::uint64_t e) const {
    return !((drop_loops_ || reversed(e)) && edges_.source[given(e)] == edges_.target[given(e)]);
  }

 private:
  bool reversed(std::uint64_t e) const { return e >= edges_.edges(); }
  std::uint64_t given(std::uint64_t e) const { return reversed(e) ? e - edges_.edges() : e; }
  const EdgeList<V>& edges_;
  bool undirected_;
  bool drop_loops_;
};

// Turns counts per row, stored at [row + 1], into offsets in place.
void prefix_sum(Buffer<EdgeOffset>& offsets) {
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
}

// Returns the cursor and moves it on. `shared`: other threads may move it at the same time.
EdgeOffset claim(EdgeOffset& cursor, bool shared) {
  return shared ? std::atomic_ref<EdgeOffset>(cursor).fetch_add(1, std::memory_order_relaxed)
                : cursor++;
}

// Scatters value(e) of every kept edge into its row, in no order, and returns the offsets.
template <VertexId V, class T, class Value>
Buffer<EdgeOffset> scatter_by_row(const EdgeView<V>& edges, std::uint64_t vertices,
                                  Buffer<T>& values, Value value) {
  const bool shared = edges.count() > kEdgeGrain && thread_count() > 1;
  Buffer<EdgeOffset> offsets(vertices + 1, 0);
  parallel_blocks(edges.count(), kEdgeGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t e = begin; e < end; ++e)
      if (edges.kept(e)) claim(offsets[edges.target(e) + std::uint64_t{1}], shared);
  });
  prefix_sum(offsets);
  values = Buffer<T>(offsets[vertices]);
  // The start of each row is its cursor: after the scatter it stands at the row's end, which is
  // the next row's start, so shifting by one restores the offsets without a second array.
  parallel_blocks(edges.count(), kEdgeGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t e = begin; e < end; ++e)
      if (edges.kept(e)) values[claim(offsets[edges.target(e)], shared)] = value(e);
  });
  std::copy_backward(offsets.begin(), offsets.end() - 1, offsets.end());
  offsets[0] = 0;
  return offsets;
}

// Keeps an entry of a row if `same` of it and the entry before is false, moves the kept entries to
// the front of the row, and closes the gaps. `columns` are the arrays to compact alike.
template <class Same, class... Columns>
void drop_repeats(Buffer<EdgeOffset>& offsets, Same same, Columns&... columns) {
  const std::size_t rows = offsets.size() - 1;
  Buffer<EdgeOffset> kept(rows + 1, 0);
  parallel_blocks(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      EdgeOffset out = offsets[row];
      for (EdgeOffset e = offsets[row]; e < offsets[row + 1]; ++e) {
        if (e > offsets[row] && same(out - 1, e)) continue;
        ((columns[out] = columns[e]), ...);
        ++out;
      }
      kept[row + 1] = out - offsets[row];
    }
  });
  prefix_sum(kept);
  if (kept[rows] == offsets[rows]) return;
  // Rows only move towards the front, so one pass in order is safe.
  for (std::size_t row = 0; row < rows; ++row) {
    const EdgeOffset from = offsets[row], to = kept[row], size = kept[row + 1] - to;
    if (from != to) ((std::copy_n(columns.begin() + from, size, columns.begin() + to)), ...);
  }
  ((columns.truncate(kept[rows])), ...);
  offsets = std::move(kept);
}

template <VertexId V>
Csr<V> build_unweighted(const EdgeList<V>& list, const BuildOptions& options) {
  const EdgeView<V> edges(list, options);
  Buffer<V> neighbours;
  Buffer<EdgeOffset> offsets = scatter_by_row(edges, list.vertices, neighbours,
                                              [&](std::uint64_t e) { return edges.source(e); });
  parallel_blocks(list.vertices, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      std::sort(neighbours.begin() + offsets[row], neighbours.begin() + offsets[row + 1]);
  });
  if (options.drop_duplicates || options.undirected)
    drop_repeats(
        offsets, [&](EdgeOffset a, EdgeOffset b) { return neighbours[a] == neighbours[b]; },
        neighbours);
  return {std::move(offsets), std::move(neighbours), {}};
}

// Edge numbers are sorted in place of neighbours, so that parallel edges keep the order given and
// weights follow.
template <VertexId V>
Csr<V> build_weighted(const EdgeList<V>& list, const BuildOptions& options) {
  const EdgeView<V> edges(list, options);
  Buffer<std::uint64_t> order;
  Buffer<EdgeOffset> offsets =
      scatter_by_row(edges, list.vertices, order, [](std::uint64_t e) { return e; });
  parallel_blocks(list.vertices, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      std::sort(order.begin() + offsets[row], order.begin() + offsets[row + 1],
                [&](std::uint64_t a, std::uint64_t b) {
                  return std::pair(edges.source(a), a) < std::pair(edges.source(b), b);
                });
  });
  if (options.drop_duplicates || options.undirected)
    drop_repeats(
        offsets,
        [&](EdgeOffset a, EdgeOffset b) {
          return edges.source(order[a]) == edges.source(order[b]);
        },
        order);
  Buffer<V> neighbours(order.size());
  Buffer<float> weights(order.size());
  parallel_blocks(order.size(), kEdgeGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t e = begin; e < end; ++e) {
      neighbours[e] = edges.source(order[e]);
      weights[e] = edges.weight(order[e]);
    }
  });
  return {std::move(offsets), std::move(neighbours), std::move(weights)};
}

}  // namespace

template <VertexId V>
Csr<V> build_csr(EdgeList<V> edges, const BuildOptions& options) {
  const Timed timed("build CSR");
  const bool weighted = !edges.weight.empty();
  const std::uint64_t copies = options.undirected ? 2 : 1;
  const std::uint64_t an_edge =
      weighted ? sizeof(std::uint64_t) + sizeof(V) + sizeof(float) : sizeof(V);
  const Bytes bytes = Bytes(edges.vertices) * sizeof(EdgeOffset) + sizeof(EdgeOffset) +
                      Bytes(edges.edges()) * copies * an_edge;
  require_memory(bytes.value, fmt::format("a graph of {} vertices and {} edges", edges.vertices,
                                          edges.edges() * copies));
  return weighted ? build_weighted(edges, options) : build_unweighted(edges, options);
}

template Csr32 build_csr(EdgeList<std::uint32_t>, const BuildOptions&);
template Csr64 build_csr(EdgeList<std::uint64_t>, const BuildOptions&);

AnyCsr build_csr(AnyEdgeList edges, const BuildOptions& options) {
  return std::visit([&](auto& list) -> AnyCsr { return build_csr(std::move(list), options); },
                    edges);
}

template <VertexId V>
Csr<V> transpose(const Csr<V>& graph) {
  EdgeList<V> reversed;
  reversed.vertices = graph.vertices();
  reversed.source = Buffer<V>(graph.edges());
  reversed.target = Buffer<V>(graph.edges());
  if (graph.weighted()) reversed.weight = Buffer<float>(graph.edges());
  parallel_blocks(graph.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      for (EdgeOffset e = graph.offsets[row]; e < graph.offsets[row + 1]; ++e) {
        reversed.source[e] = static_cast<V>(row);
        reversed.target[e] = graph.neighbours[e];
        if (graph.weighted()) reversed.weight[e] = graph.weights[e];
      }
    }
  });
  return build_csr(std::move(reversed));
}

template Csr32 transpose(const Csr32&);
template Csr64 transpose(const Csr64&);

}  // namespace plait
