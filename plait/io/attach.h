// Reads features and weights from files of their own, beside a graph.
#pragma once

#include <cstdint>
#include <string>

#include "plait/base/array.h"
#include "plait/graph/dataset.h"

namespace plait {

// Sets a dataset's features from .npy, (vertices, width) or (vertices,) of f4 or f8; or from .npz,
// a SciPy matrix (scipy.h), which stays sparse, or an archive that holds x or nothing else. Throws
// InputError; also unless there is one row per vertex.
void attach_features(Dataset& dataset, const std::string& path);

// Returns `edges` numbers from .npy, or from .npz an archive that holds edge_weight or nothing
// else. Throws InputError.
Array<float> read_weights(const std::string& path, std::uint64_t edges);

}  // namespace plait
