// Random edges of one hop of a sample, with factors of rows.
#pragma once

#include <random>
#include <vector>

#include "plait/aggregate/sampled_edges.h"

namespace plait::test {

struct Sampled {
  SampledEdges edges;
  std::vector<float> pre, post;
  bool weighted = true;
};

inline std::vector<float> random_floats(std::mt19937& random, std::uint64_t count) {
  std::vector<float> values(count);
  for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

// Rows without edges, parallel edges, and inputs that no edge reads.
inline Sampled random_sample(std::mt19937& random, std::uint64_t own, std::uint64_t inputs) {
  Sampled s;
  s.edges.inputs = inputs;
  for (std::uint64_t i = 0; i < own; ++i) {
    const std::uint64_t degree = random() % 3 == 0 ? 0 : random() % 20;
    for (std::uint64_t e = 0; e < degree; ++e)
      s.edges.sources.push_back(static_cast<Slot>(random() % (inputs - inputs / 4)));
    s.edges.offsets.push_back(s.edges.sources.size());
  }
  s.edges.weights = random_floats(random, s.edges.sources.size());
  s.pre = random_floats(random, inputs);
  s.post = random_floats(random, own);
  return s;
}

}  // namespace plait::test
