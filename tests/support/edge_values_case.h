// Random arguments of the operations on values of edges, and their results by the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/kernels/edge_values.h"

namespace plait::test {

// Which operation, and the terms that it takes.
enum class EdgeOperationKind { scores, sums, rows };
struct EdgeOperationTerm {
  EdgeOperationKind kind;
  EdgeTerm term;
};
inline const std::vector<EdgeOperationTerm> kEdgeOperationTerms{
    {EdgeOperationKind::scores, EdgeTerm::product}, {EdgeOperationKind::scores, EdgeTerm::leaky},
    {EdgeOperationKind::sums, EdgeTerm::plus},      {EdgeOperationKind::sums, EdgeTerm::leaky},
    {EdgeOperationKind::sums, EdgeTerm::slope},     {EdgeOperationKind::sums, EdgeTerm::relu},
    {EdgeOperationKind::sums, EdgeTerm::gate},      {EdgeOperationKind::sums, EdgeTerm::edge},
    {EdgeOperationKind::rows, EdgeTerm::leaky},     {EdgeOperationKind::rows, EdgeTerm::slope},
    {EdgeOperationKind::rows, EdgeTerm::gate},      {EdgeOperationKind::rows, EdgeTerm::own}};

// Row i of `graph` reads the vertices of its list. Edges are numbered in a random order.
struct EdgeValuesCase {
  EdgeValuesCase(const Csr32& csr, std::uint64_t heads_of, std::uint64_t features_of)
      : graph(csr), heads(heads_of), features(features_of) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& values, std::uint64_t count) {
      values.resize(count);
      for (float& value : values) value = normal(random);
    };
    const std::uint64_t width = heads * features, edges = graph.neighbours.size();
    place.resize(edges);
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random);
    fill(a, graph.vertices() * width);
    fill(b, graph.vertices() * width);
    fill(m, edges * width);
    fill(factor, width);
    fill(weights, edges * heads);
    fill(z, edges * heads);
    fill(dp, edges * heads);
  }

  EdgeRows edges() const {
    const std::uint64_t rows = graph.vertices();
    return {.begin = graph.offsets.span().first(rows),
            .end = graph.offsets.span().subspan(1),
            .columns = graph.neighbours.data(),
            .x = {.base = b.data(), .stride = heads * features}};
  }
  EdgeValues values(EdgeTerm term, bool with_m, bool with_weights) const {
    return {.edges = edges(),
            .place = place.data(),
            .heads = heads,
            .features = features,
            .term = term,
            .slope = 0.2f,
            .a = a.data(),
            .m = with_m ? m.data() : nullptr,
            .factor = factor.data(),
            .weights = with_weights ? weights.data() : nullptr};
  }
  EdgeSoftmax softmax(bool gradient) const {
    return {edges(), place.data(), heads, z.data(), gradient ? dp.data() : nullptr};
  }
  // Returns the number of floats of a result.
  std::uint64_t size_of_result(EdgeOperationKind kind) const {
    const std::uint64_t edge_count = place.size();
    if (kind == EdgeOperationKind::scores) return edge_count * heads;
    return (kind == EdgeOperationKind::sums ? graph.vertices() : edge_count) * heads * features;
  }

  const Csr32& graph;
  std::uint64_t heads, features;
  std::vector<std::uint32_t> place;
  std::vector<float> a, b, m, factor, weights, z, dp;
};

// Runs an operation on the CPU: the fast one or the reference.
inline std::vector<float> run_edge_operation(const EdgeValuesCase& c, EdgeOperationKind kind,
                                             const EdgeValues& args, bool reference) {
  std::vector<float> result(c.size_of_result(kind), -7);
  if (kind == EdgeOperationKind::scores)
    (reference ? edge_scores_reference : edge_scores)(args, result.data());
  else if (kind == EdgeOperationKind::sums)
    (reference ? edge_sums_reference : edge_sums)(args, result.data());
  else
    (reference ? edge_rows_reference : edge_rows)(args, result.data());
  return result;
}

// Returns the greatest difference, as a part of the greatest value or of 1 if that is more.
inline double apart(const std::vector<float>& values, const std::vector<float>& expected) {
  double greatest = 1, difference = values.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < expected.size() && i < values.size(); ++i) {
    greatest = std::max(greatest, std::abs(double{expected[i]}));
    const double here = std::abs(double{values[i]} - double{expected[i]});
    difference = std::isnan(here) ? INFINITY : std::max(difference, here);
  }
  return difference / greatest;
}

// Compares all operations with the reference, by run(kind, arguments) and softmax(arguments).
// complain(text) tells where they differ by more than 1e-5.
template <class Run, class Softmax, class Complain>
void compare_edge_values(const EdgeValuesCase& c, Run&& run, Softmax&& softmax,
                         Complain&& complain) {
  const auto check = [&](const std::vector<float>& found, const std::vector<float>& expected,
                         const std::string& what) {
    if (const double error = apart(found, expected); error > 1e-5)
      complain(what + ": " + std::to_string(error) + " with " + std::to_string(c.heads) +
               " heads of " + std::to_string(c.features));
  };
  for (const auto& [kind, term] : kEdgeOperationTerms)
    for (const bool with_m : {false, true})
      for (const bool with_weights : {false, true}) {
        const EdgeValues args = c.values(term, with_m, with_weights);
        check(run(kind, args), run_edge_operation(c, kind, args, true),
              "operation " + std::to_string(static_cast<int>(kind)) + " of term " +
                  std::to_string(static_cast<int>(term)));
      }
  for (const bool gradient : {false, true}) {
    std::vector<float> expected(c.z.size());
    edge_softmax_reference(c.softmax(gradient), expected.data());
    check(softmax(c.softmax(gradient)), expected, gradient ? "gradient of softmax" : "softmax");
  }
}

}  // namespace plait::test
