// Answers questions about the backward pass under way. With the answers Python tells a loss that is
// the same on every rank from a loss of one rank's rows.
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

#include <unordered_set>
#include <vector>

namespace plait {
namespace {

using torch::autograd::Node;
using Nodes = std::unordered_set<Node*>;

// Returns all nodes below the one from which the pass began, without that one.
const Nodes& nodes_of_pass() {
  const Nodes* const nodes = torch::autograd::get_current_graph_task_nodes_in_graph();
  TORCH_CHECK(nodes != nullptr && torch::autograd::get_current_node() != nullptr,
              "plait: this works only within a backward pass");
  return *nodes;
}

// Tells whether the pass has begun from the node that asks.
bool backward_begins_here() {
  return !nodes_of_pass().contains(torch::autograd::get_current_node().get());
}

// Returns the nodes to which the loss leads directly: no other node of the pass leads to them.
std::vector<Node*> first_nodes(const Nodes& nodes) {
  Nodes led_to;
  for (Node* const node : nodes)
    for (const auto& edge : node->next_edges()) led_to.insert(edge.function.get());
  std::vector<Node*> first;
  for (Node* const node : nodes)
    if (!led_to.contains(node)) first.push_back(node);
  return first;
}

// Tells whether a path of the pass leads from the loss to the node that asks without a node of that
// name. A path that is one edge is not seen: from the very node of the loss to one that other paths
// reach as well.
bool backward_bypasses(const std::string& name) {
  const Nodes& nodes = nodes_of_pass();
  Node* const here = torch::autograd::get_current_node().get();
  std::vector<Node*> ahead = first_nodes(nodes);
  Nodes seen(ahead.begin(), ahead.end());
  while (!ahead.empty()) {
    Node* const node = ahead.back();
    ahead.pop_back();
    if (node == here) return true;
    if (node->name() == name) continue;
    for (const auto& edge : node->next_edges())
      if (Node* const next = edge.function.get(); next != nullptr && seen.insert(next).second)
        ahead.push_back(next);
  }
  return false;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.def("backward_begins_here() -> bool", &backward_begins_here);
  m.def("backward_bypasses(str name) -> bool", &backward_bypasses);
}

}  // namespace plait
