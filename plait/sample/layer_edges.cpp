#include "plait/sample/layer_edges.h"

namespace plait {

void layer_edges(const LayerEdges& a) {
  if (a.hop.targets == 0 && a.to.offsets != nullptr) a.to.offsets[0] = 0;
  for (std::uint64_t t = 0; t < a.hop.targets; ++t) {
    layer_edge::write_target(a, t);
    for (std::uint64_t e = a.hop.offsets[t]; e < a.hop.offsets[t + 1]; ++e)
      layer_edge::write_edge(a, t, e);
  }
  if (a.to.normalization != nullptr || a.to.numbers != nullptr)
    for (std::uint64_t i = 0; i < a.hop.inputs; ++i) layer_edge::write_input(a, i);
}

}  // namespace plait
