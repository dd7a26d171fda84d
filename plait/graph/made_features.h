// Features made from the graph itself, for graphs without features.
#pragma once

#include <string_view>

#include "plait/graph/dataset.h"

namespace plait {

// Returns sparse features in which row i is 1 in column columns[i] and 0 elsewhere; as wide as the
// largest column needs.
Features one_hot(Buffer<std::uint32_t> columns);

// Tells whether `name` is one of the ways to make features:
//   constant   1 for each vertex
//   degree     the number of edges into a vertex, one-hot (Xu et al., ICLR 2019, section 7)
//   identity   the vertex itself, one-hot: each vertex then has a weight of its own
bool makes_features(std::string_view name);
// Makes features of a dataset's graph; of a renumbered one, the same as before. Throws UsageError
// for other names, and if there would be more than 2^32 - 1 columns.
Features make_features(std::string_view name, const Dataset& dataset);

}  // namespace plait
