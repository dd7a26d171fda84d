// The order by communities on the GPU. This header needs no header of CUDA.
#pragma once

#include "plait/reorder/reorder.h"

namespace plait {

// Returns the order and the communities of order_by_communities() (methods.h) with vertices without
// edges last: the same numbers, found on the current GPU. Waits for the GPU. Throws Error if there
// are 2^32 - 1 vertices or more, DoesNotFitError, and UsageError in a build without CUDA.
Reordering gpu_order_by_communities(const ReorderInput& input);

}  // namespace plait
