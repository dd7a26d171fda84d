// The rows of the table of apps, one per file NAME.cpp, and what their verifiers share.
#pragma once

#include <algorithm>

#include "plait/apps/app.h"
#include "plait/base/error.h"

namespace plait {

extern const App kBfs, kComponents, kKcore, kLeiden, kLouvain, kPagerank, kSssp, kTriangles;

// Throws MismatchError unless the result states this fact with this value.
template <class T>
void require_fact(const AppResult& result, const std::string& name, T value) {
  const auto fact = std::ranges::find(result.facts, name, &AppFact::name);
  const T stated = fact == result.facts.end() ? T{} : std::get<T>(fact->value);
  require<MismatchError>(fact != result.facts.end() && stated == value, "{} is {}, not {}", name,
                         stated, value);
}

// Throws UsageError unless the graph has weights, all of which are numbers that are not negative.
// `otherwise`: what to do with a graph without weights.
void require_weights(const Dataset& dataset, const std::string& otherwise);
// Throws UsageError unless the graph has a vertex with this number.
void require_vertex(const Dataset& dataset, std::uint64_t number);
// Returns the neighbours of each vertex in the undirected simple graph, by numbers, ascending.
std::vector<std::vector<std::uint64_t>> simple_neighbours(const Dataset& dataset);

}  // namespace plait
