// The one place where `auto` becomes a choice, and where choices that do not go together are
// refused.
#pragma once

#include "plait/plan/route.h"

namespace plait {

// Returns the route with a strategy that is not automatic: pipelined on GPUs, bulk on the CPU.
// Throws a UsageError that says what to use instead if the route has
//   - a strategy or a transport of GPUs on the CPU,
//   - exact sums on GPUs by a strategy whose order of summing depends on how the graph is cut,
//   - exact sums on GPUs of rows that cross as less than fp32,
//   - strategy get on GPUs with settings out of range, or that reads by NVSHMEM's device functions
//     over another transport.
Route choose(Route route);

// Throws a UsageError unless the route brings rows themselves to edges, in full precision, as
// operations that are no sums need them.
void require_rows(const Route& route);

// Tells whether each of the route's GPUs must reach the memory of the others.
bool needs_peer_access(const Route& route);

}  // namespace plait
