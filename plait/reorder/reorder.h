// Orders of a graph's vertices in which vertices that read each other stand close together, so that
// rows are found in caches and ranges of vertices cut few edges.
//
// An order lists every vertex once: vertex order[i] becomes vertex i (graph/renumber.h). It is a
// function of the graph and the seed, whatever the number of threads. Vertices without edges come
// last, in the order of their ids.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plait/base/array.h"
#include "plait/graph/csr.h"

namespace plait {

// The ways to find an order; reorder.cpp has a sentence about each.
enum class ReorderMethod { none, automatic, communities, degree, rcm, boba, metis };

// Throws a UsageError that lists the methods.
ReorderMethod parse_reorder_method(std::string_view name);
std::string_view to_string(ReorderMethod method);
// Returns all methods.
std::span<const ReorderMethod> reorder_methods();

struct Reordering;

// A graph to find an order for.
struct ReorderInput {
  const AnyCsr& graph;
  bool symmetric = false;  // every edge has its reverse
  std::uint64_t seed = 0;  // of metis
  // gpu_order_by_communities() of cuda/community_order.h, to find communities on the current GPU if
  // it has the memory, else by threads: the same ones. Null: by threads.
  Reordering (*on_gpu)(const ReorderInput&) = nullptr;
};

// An order, and what was found on the way.
struct Reordering {
  ReorderMethod method = ReorderMethod::none;  // never automatic
  Buffer<std::uint64_t> order;                 // empty: the order of ids
  std::vector<std::uint32_t> communities;      // a label below vertices() per vertex; or empty
  bool gpu = false;                            // found on a GPU
};

// Finds an order. `automatic` is that of communities if ids are scattered (GNNAdvisor, section 5.1)
// and it brings the ends of edges closer, else none. Throws Error if the method cannot number so
// many vertices or edges, and DoesNotFitError.
Reordering find_order(ReorderMethod method, const ReorderInput& input);

}  // namespace plait
