// The extremum over neighbours as it is defined: column by column, first the extreme value, then
// the edges that reach it.
#include <cmath>

#include "plait/kernels/extremum.h"

namespace plait {
namespace {

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

void apply_reference(const ExtremumForward& args) {
  const EdgeRows& edges = args.edges;
  for (std::size_t i = 0; i < edges.begin.size(); ++i)
    for (std::uint64_t j = 0; j < args.width; ++j) {
      const auto value = [&](EdgeOffset e) { return edges.x.row(edges.columns[e])[j]; };
      const auto beyond = [&](float a, float b) {
        return args.which == Extremum::greatest ? a > b : a < b;
      };
      float extreme = edges.begin[i] < edges.end[i] ? value(edges.begin[i]) : 0.0f, ties = 0;
      for (EdgeOffset e = edges.begin[i]; e < edges.end[i]; ++e)
        if (std::isnan(value(e)) || beyond(value(e), extreme)) extreme = value(e);
      for (EdgeOffset e = edges.begin[i]; e < edges.end[i]; ++e) ties += same(value(e), extreme);
      args.y[i * args.width + j] = extreme;
      if (args.ties) args.ties[i * args.width + j] = ties;
    }
}

void apply_reference(const ExtremumBackward& args) {
  const EdgeRows& edges = args.edges;
  for (std::size_t i = 0; i < edges.begin.size(); ++i)
    for (std::uint64_t j = 0; j < args.width; ++j) {
      double sum = 0;
      for (EdgeOffset e = edges.begin[i]; e < edges.end[i]; ++e) {
        const float* target = edges.x.row(edges.columns[e]);
        if (same(args.x[i * args.width + j], target[j]))
          sum += double{target[row_stride(args.width) + j]};
      }
      args.dx[i * args.width + j] = static_cast<float>(sum);
    }
}

}  // namespace plait
