// Graphs made by rule. A generator gives the same edges on every machine and for every number of
// threads: random numbers are functions of the seed and the number of the edge.
#pragma once

#include <array>
#include <cstdint>

#include "plait/graph/edge_list.h"

namespace plait {

// Recursive matrix (Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph mining",
// SDM 2004): an edge falls into one of the four quadrants of the matrix with the probabilities a,
// b, c and 1 - a - b - c, then into one of the quadrants of that quadrant, and so on. The defaults
// are the values of the Graph500 benchmark.
struct RmatOptions {
  std::uint64_t vertices = 0;  // 2^scale, or any number from 2
  std::uint64_t edges = 0;     // directed
  double a = 0.57;
  double b = 0.19;
  double c = 0.19;
  std::uint64_t seed = 0;
};

// Returns directed edges, with duplicates, which BuildOptions can drop, and without loops; ids are
// shuffled. Throws UsageError if an option is out of range, DoesNotFitError before memory is taken.
AnyEdgeList generate_rmat(const RmatOptions& options);

// A pseudorandom permutation of 0 .. size - 1. Each number is found by itself: steps that are
// one-to-one on the numbers of as many bits as size - 1 has are repeated in rounds until the result
// is below size (less than twice on average).
class Permutation {
 public:
  // Makes a permutation. Different streams of one seed give different permutations.
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream);

  std::uint64_t operator()(std::uint64_t i) const {
    do {
      for (const Round& round : rounds_) {
        i = (i * round.factor + round.addend) & mask_;
        i ^= i >> shift_;
      }
    } while (i >= size_);
    return i;
  }

 private:
  struct Round {
    std::uint64_t factor = 1;  // odd
    std::uint64_t addend = 0;
  };
  std::uint64_t size_;
  std::uint64_t mask_;
  int shift_;
  std::array<Round, 4> rounds_;
};

}  // namespace plait
