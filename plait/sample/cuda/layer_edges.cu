// Targets, edges and inputs are work of one thread each, so that a hub's edges are shared by the
// whole GPU. Per target 8 + 8 bytes are read and up to 16 written, per edge at most 4 + 8 + 4 read
// and 8 written, and an edge searches its target in offsets that stay in cache: the last hop of
// 9.2 M edges takes 0.2 GB, less than 0.1 ms. Without loops edges need nothing but their offsets.
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/lower_bound.h"
#include "plait/sample/cuda/layer_edges.h"

namespace plait {
namespace {

__global__ void write_targets(const LayerEdges a) {
  const std::uint64_t t = item_of_thread();
  if (t < a.hop.targets)
    layer_edge::write_target(a, t);
  else if (t == 0 && a.to.offsets != nullptr)
    a.to.offsets[0] = 0;
}

__global__ void write_edges(const LayerEdges a) {
  const std::uint64_t e = item_of_thread();
  if (e >= a.hop.edges) return;
  // The last target that begins at e or before has it, because targets behind an empty one begin
  // there.
  const std::uint64_t t = lower_bound(a.hop.offsets, 0, a.hop.targets + 1, e + 1) - 1;
  layer_edge::write_edge(a, t, e);
}

__global__ void write_inputs(const LayerEdges a) {
  const std::uint64_t i = item_of_thread();
  if (i < a.hop.inputs) layer_edge::write_input(a, i);
}

}  // namespace

void gpu_layer_edges(const LayerEdges& a, void* stream) {
  auto* const on = static_cast<cudaStream_t>(stream);
  const bool of_edges = a.to.sources != nullptr || a.to.weights != nullptr;
  const bool of_inputs = a.to.normalization != nullptr || a.to.numbers != nullptr;
  write_targets<<<blocks_of_items(a.hop.targets + 1), kThreadsOfItems, 0, on>>>(a);
  if (of_edges && a.hop.edges > 0)
    write_edges<<<blocks_of_items(a.hop.edges), kThreadsOfItems, 0, on>>>(a);
  if (of_inputs && a.hop.inputs > 0)
    write_inputs<<<blocks_of_items(a.hop.inputs), kThreadsOfItems, 0, on>>>(a);
  check_cuda(cudaGetLastError(), "the edges of a sample");
}

}  // namespace plait
