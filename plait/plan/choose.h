// The one place where `auto` becomes a choice, and where choices that do not go together are
// refused.
#pragma once

#include "plait/plan/route.h"

namespace plait {

// Returns the route with a strategy that is not automatic: pipelined on GPUs, bulk on the CPU.
// Throws a UsageError that says what to use instead if the route has
//   - a strategy or a transport of GPUs on the CPU,
//   - a wire type of less than fp32 and a strategy that moves rows as they are,
//   - exact sums of rows that cross as less than fp32,
//   - exact sums on GPUs by a strategy whose order of summing depends on how the graph is cut,
//   - strategy get on GPUs with settings out of range, or that reads by NVSHMEM's device functions
//     over another transport.
Route choose(Route route);

// Throws a UsageError unless the route brings rows themselves to edges, in full precision, as
// operations that are no sums need them.
void require_rows(const Route& route);

// Returns the type of rows on the wire of this name: "fp32" or "bf16". Throws a UsageError that
// lists them.
DType parse_wire(std::string_view name);
// Throws a UsageError if rows are to cross as less than fp32 in a run of so many ranks, but there
// is only one.
void require_wire_used(const Route& route, int ranks);

// Tells whether each of the route's GPUs must reach the memory of the others.
bool needs_peer_access(const Route& route);

}  // namespace plait
