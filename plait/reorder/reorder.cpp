#include "plait/reorder/reorder.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/names.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/row_grain.h"
#include "plait/graph/renumber.h"
#include "plait/graph/statistics.h"
#include "plait/reorder/methods.h"

namespace plait {
namespace {

// Share of the averaged edge span that a closer order may leave. An order that was found before
// leaves more than this, so that a graph in its order is not renumbered again.
constexpr double kMostLeft = 0.9;

Reordering keep_order(const ReorderInput&) { return {}; }

// On a GPU that has the memory for it, or by threads.
Reordering order_by_communities_anywhere(const ReorderInput& input) {
  if (input.on_gpu == nullptr) return order_by_communities(input);
  try {
    Reordering found = input.on_gpu(input);
    found.gpu = true;
    return found;
  } catch (const DoesNotFitError&) {
    return order_by_communities(input);
  }
}

struct Method {
  ReorderMethod method;
  std::string_view name;
  Reordering (*find)(const ReorderInput&);
};

// By value of ReorderMethod.
constexpr std::array kMethods{
    Method{ReorderMethod::none, "none", keep_order},
    Method{ReorderMethod::automatic, "auto", nullptr},
    Method{ReorderMethod::communities, "communities", order_by_communities_anywhere},
    Method{ReorderMethod::degree, "degree", order_by_degree},
    Method{ReorderMethod::rcm, "rcm", order_by_rcm},
    Method{ReorderMethod::boba, "boba", order_by_boba},
    Method{ReorderMethod::metis, "metis", order_by_metis},
};

template <class Member>
constexpr auto column_of(Member member) {
  std::array<std::remove_cvref_t<decltype(kMethods[0].*member)>, kMethods.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kMethods[i].*member;
  return values;
}
constexpr Names<ReorderMethod, kMethods.size()> kNames{"order", column_of(&Method::name)};
constexpr auto kValues = column_of(&Method::method);

// Marks the vertices at which an edge begins or ends.
Buffer<std::uint8_t> vertices_with_edges(const ReorderInput& input) {
  return std::visit(
      [&](const auto& graph) {
        Buffer<std::uint8_t> marks(graph.vertices(), 0);
        parallel_blocks(marks.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            if (graph.degree(i) > 0) std::atomic_ref(marks[i]).store(1, std::memory_order_relaxed);
            if (input.symmetric) continue;
            for (const auto j : graph.row(i))
              std::atomic_ref(marks[j]).store(1, std::memory_order_relaxed);
          }
        });
        return marks;
      },
      input.graph);
}

void put_last_without_edges(const ReorderInput& input, Buffer<std::uint64_t>& order) {
  const Buffer<std::uint8_t> marks = vertices_with_edges(input);
  if (std::find(marks.begin(), marks.end(), std::uint8_t{0}) == marks.end()) return;
  auto* const first = std::stable_partition(order.begin(), order.end(),
                                            [&](std::uint64_t v) { return marks[v] != 0; });
  std::sort(first, order.end());
}

// Returns the bytes that a method takes besides a copy of the graph: at least an order, the places
// of vertices, and their marks or degrees; and to turn the graph round, a list of its edges and a
// graph.
std::uint64_t bytes_beside_graph(ReorderMethod method, const ReorderInput& input) {
  constexpr std::uint64_t kPerVertex = 32;
  const bool transposed = method == ReorderMethod::rcm && !input.symmetric;
  const std::uint64_t id_bytes = std::holds_alternative<Csr32>(input.graph) ? 4 : 8;
  return vertex_count(input.graph) * (kPerVertex + (transposed ? sizeof(EdgeOffset) : 0)) +
         (transposed ? 3 * edge_count(input.graph) * id_bytes : 0);
}

// Returns the order that `automatic` stands for.
Reordering closer_order(const ReorderInput& input) {
  const double span = averaged_edge_span(input.graph);
  if (!is_above_span_bound(span, vertex_count(input.graph))) return {};
  Reordering found = find_order(ReorderMethod::communities, input);
  if (found.order.empty()) return {};
  const Buffer<std::uint64_t> places = inverse_of(found.order.span());
  if (averaged_edge_span(input.graph, places.span()) > kMostLeft * span) return {};
  return found;
}

}  // namespace

ReorderMethod parse_reorder_method(std::string_view name) { return kNames.parse(name); }
std::string_view to_string(ReorderMethod method) { return kNames.of(method); }
std::span<const ReorderMethod> reorder_methods() { return kValues; }

Reordering find_order(ReorderMethod method, const ReorderInput& input) {
  if (method == ReorderMethod::automatic) return closer_order(input);
  if (method == ReorderMethod::none) return {};
  const Timed timed("find order");
  require_memory(bytes_beside_graph(method, input),
                 fmt::format("the order of {}", to_string(method)));
  Reordering found = kMethods[static_cast<std::size_t>(method)].find(input);
  found.method = method;
  if (!found.order.empty() && !found.gpu) put_last_without_edges(input, found.order);
  return found;
}

}  // namespace plait
