// A graph, random if none is given, with features. It is aggregated by three loops in double
// precision.
#pragma once

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "plait/partition/partition.h"
#include "tests/support/random_graph.h"

namespace plait::test {

struct Case {
  Csr32 graph;
  std::uint64_t width;
  std::vector<float> x, scale;  // of all vertices
  unsigned seed;

  explicit Case(unsigned number) : seed(number) {
    std::mt19937 random(seed);
    const std::uint64_t vertices = 1 + random() % 120;
    graph = random_csr<std::uint32_t>(vertices, random() % (vertices * 9), seed, seed % 2 == 0);
    width = 1 + random() % 40;
    fill(random);
  }
  Case(Csr32 given, std::uint64_t columns, unsigned number)
      : graph(std::move(given)), width(columns), seed(number) {
    std::mt19937 random(seed);
    fill(random);
  }

 private:
  void fill(std::mt19937& random) {
    const std::uint64_t vertices = graph.vertices();
    std::normal_distribution<float> normal;
    for (std::uint64_t i = 0; i < vertices * width; ++i) x.push_back(normal(random));
    for (std::uint64_t i = 0; i < vertices; ++i) scale.push_back(normal(random));
  }
};

struct Way {
  bool weighted, pre, post, transposed;
};

// Returns diag(post) A diag(pre) x, or its transpose; and the sum of absolute values, which bounds
// the error of a sum in single precision.
struct Expected {
  std::vector<double> y, bound;

  Expected(const Case& c, const Way& way) : y(c.x.size()), bound(c.x.size()) {
    for (std::uint64_t i = 0; i < c.graph.vertices(); ++i)
      for (EdgeOffset e = c.graph.offsets[i]; e < c.graph.offsets[i + 1]; ++e) {
        std::uint64_t to = i, from = c.graph.neighbours[e];
        if (way.transposed) std::swap(to, from);
        double factor = way.weighted ? c.graph.weight(e) : 1;
        if (way.post) factor *= c.scale[way.transposed ? from : to];
        if (way.pre) factor *= c.scale[way.transposed ? to : from];
        for (std::uint64_t k = 0; k < c.width; ++k) {
          y[to * c.width + k] += factor * c.x[from * c.width + k];
          bound[to * c.width + k] += std::abs(factor * c.x[from * c.width + k]);
        }
      }
  }
};

inline std::vector<float> own_part(const std::vector<float>& all, const Partition& partition,
                                   int rank, std::uint64_t width) {
  std::vector<float> own(partition.size(rank) * width);
  for (std::uint64_t r = 0; r < partition.size(rank); ++r)
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(partition.vertex(rank, r) * width), width,
                own.begin() + static_cast<std::ptrdiff_t>(r * width));
  return own;
}

}  // namespace plait::test
