// The one table of operations over edges that are no plain sums. kernels/edge_rows.h says what an
// operation consists of; whoever adds one adds its kernels and a row here.
#pragma once

#include <variant>

#include "plait/base/error.h"
#include "plait/kernels/attention.h"
#include "plait/kernels/extremum.h"
#include "plait/kernels/pair_attention.h"
#include "plait/plan/halo_schedule.h"

namespace plait {

using EdgeOperation =
    std::variant<AttentionForward, AttentionBackward, PairForward, PairOwnGradient, PairBackward,
                 ExtremumForward, ExtremumBackward>;

// Gives an operation that draws random numbers by global ids the vertices of rows and slots. Own
// rows are the first slots. Throws UsageError if dropout is active and `vertices` is empty but rows
// are not.
template <class Operation>
void set_vertices(Operation& operation, std::span<const std::uint64_t> vertices) {
  if constexpr (requires { operation.dropout.step; }) {
    if (!operation.dropout.step.active()) return;
    require<UsageError>(!vertices.empty() || operation.edges.begin.empty(),
                        "dropout draws by global ids, but the graph was placed without them");
    operation.dropout.row_vertex = operation.dropout.slot_vertex = vertices.data();
  }
}

// Returns the bytes of an operation's rows and results, and the kind of its costs. They decide the
// schedule of its passes.
inline PassWidths pass_widths(const EdgeOperation& any) {
  const bool extremum =
      std::holds_alternative<ExtremumForward>(any) || std::holds_alternative<ExtremumBackward>(any);
  return std::visit(
      [&](const auto& operation) -> PassWidths {
        return {.y_bytes = operation.result_width() * sizeof(float),
                .wire_bytes = row_bytes(operation.row_width()),
                .work = extremum ? EdgeWork::extremum : EdgeWork::attention};
      },
      any);
}

}  // namespace plait
