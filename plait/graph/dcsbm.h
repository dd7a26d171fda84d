// The degree-corrected stochastic block model (Karrer and Newman, "Stochastic blockmodels and
// community structure in networks", Physical Review E 83, 2011): graphs with communities and heavy
// tails of degrees, with vertex features and labels that follow the communities. Everything is a
// function of the options, on every machine and for every number of threads.
//
//   Degrees   The weight of a vertex is drawn from a Pareto distribution of density x^-exponent,
//             cut off at an expected degree of `cap`.
//   Edges     An inner edge draws a community by its weight, then two of its vertices by theirs. A
//             leaving edge draws two different communities, and a vertex of each. The number of
//             either kind is exact: pairs that are loops or were drawn before are drawn again.
//             Every edge is in both directions.
//   Sizes     The sizes of communities are quantiles of a Pareto distribution from 1 to 10, of
//             density x^-2.
//   Ids       Ids are shuffled. In a set of graphs the graphs are, and the vertices of each stand
//             together.
//   Classes   The class of a vertex is its community modulo the number of classes; features, label
//             sets and splits follow it (class_data.h). With the default options (7 classes, mean
//             degree 20, leaving 0.2) the nearest class mean, which ignores the edges, is right for
//             63 to 70% of the vertices, and for 97 to 99% after features are averaged over
//             neighbours; with means of the 20 training vertices per class, for 50 to 60% and for
//             97 to 99%.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plait/graph/dataset.h"

namespace plait {

// The things that get labels, and the kind of their labels.
enum class DcsbmLabels {
  vertices,  // a class for each vertex
  sets,      // any number of classes for each vertex
  graphs,    // a class for each community, which is a graph of a set: no edge leaves it
};
std::string_view to_string(DcsbmLabels labels);
// Throws UsageError for another word.
DcsbmLabels parse_dcsbm_labels(std::string_view word);

// The parameters of one graph.
struct DcsbmOptions {
  std::string_view name = "dcsbm";
  std::uint64_t vertices = 10000;
  std::uint64_t edges = 200000;  // directed: both directions counted, so even
  std::uint64_t communities = 21;
  double leaving = 0.2;      // share of edges between communities
  double exponent = 2.5;     // 1.5 .. 10
  double cap = 0;            // of expected degrees; 0: vertices / 10, or 10 times the mean
  std::int32_t classes = 7;  // 0: no labels, features or splits
  std::uint64_t width = 32;  // of features; 0: none
  double noise = 0.55;
  std::uint64_t train_per_class = 20;
  std::uint64_t validation_per_class = 50;
  std::uint64_t seed = 0;
  DcsbmLabels labels = DcsbmLabels::vertices;
  std::string_view table = {};  // of a preset: the paper's table that has its counts
};

// Generates a graph. Takes about 10 bytes per directed edge while it works, or 4 besides the data.
// Throws UsageError if an option is out of range, DoesNotFitError before memory is taken, and Error
// if the edges hardly find free pairs of vertices: fewer edges or fewer communities help.
Dataset generate_dcsbm(const DcsbmOptions& options);

// Returns the graphs of the papers' tables, by their counts, except crawls of the web (crawl.h):
// reddit, products, cora and others.
std::span<const DcsbmOptions> dcsbm_presets();
// Returns the preset of this name. Throws a UsageError that lists all names.
const DcsbmOptions& dcsbm_preset(std::string_view name);

// Returns the options with vertices, edges and communities times `scale`, above 0 and at most 1
// (UsageError otherwise); at least 2 communities. If less than half of the pairs of vertices inside
// or between communities would stay free, there are fewer edges.
DcsbmOptions scaled(DcsbmOptions options, double scale);

}  // namespace plait
