// The graph of an operation, kept from its call to its gradient.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "plait/nn/operations/dense.h"

namespace plait {

inline void keep_graph(torch::autograd::AutogradContext* context, const GraphRef& graph) {
  context->saved_data["graph"] = c10::IValue::make_capsule(graph);
}

// Returns the graph that keep_graph() was given.
inline GraphRef kept_graph(torch::autograd::AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<GraphHandle>(context->saved_data["graph"].toCapsule());
}

}  // namespace plait
