// Random walks: sequences of vertices, each drawn from the row of the one before (DeepWalk;
// node2vec, Grover and Leskovec, KDD 2016), and the vertices that walks visit most often (PinSAGE,
// Ying et al., KDD 2018).
//
// A step depends on the key, the number of the walk and the number of the step alone: not on
// threads, on the device or on other walks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/raw_vector.h"
#include "plait/graph/csr.h"

namespace plait {

struct WalkSettings {
  std::uint64_t length = 1;  // steps, up to kMostSteps
  // node2vec: of the edges of a vertex that was reached from t, one to t has the weight 1 / p, one
  // to a vertex with an edge to t the weight 1, and the others 1 / q; times their weights.
  // kLeast .. kMost.
  double p = 1, q = 1;
  double restart = 0;       // the chance that a step leads back to the start: 0 <= restart < 1
  std::uint64_t first = 0;  // the number of the first walk; the others follow

  static constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 31;
  static constexpr double kLeast = 1e-9, kMost = 1e9;
};

// The vertices that the walks from each start have visited most often.
struct VisitedVertices {
  RawVector<EdgeOffset> offsets;  // starts + 1
  RawVector<std::uint64_t>
      vertices;  // of each start the most visited first, of equals the least id
  RawVector<std::uint32_t> visits;
};

// Walks on one graph. Several threads may use it at once.
class RandomWalks {
 public:
  // `weights`: one per edge, finite and >= 0: edges are drawn in proportion. Empty: all are equally
  // likely. The graph's arrays are shared; weights are only read here. Throws UsageError.
  explicit RandomWalks(AnyCsr graph, std::span<const float> weights = {});

  // Returns starts x (length + 1) vertices, row by row: a walk's start and where each step has led.
  // A walk stays where it is if no edge, or none of weight above 0, leads on. Starts may repeat,
  // and have walks of their own. Throws UsageError for settings out of range and for a start that
  // is no vertex, with its place; DoesNotFitError if there is no memory for the walks.
  RawVector<std::uint64_t> walk(const WalkSettings& settings, std::span<const std::uint64_t> starts,
                                std::uint64_t key) const;

  // Returns at most `count` vertices of each start, without the start itself, by the number of
  // steps of `walks` walks that lead there. A walk's number is, from the first on, its start's
  // place times `walks` and its own among them.
  VisitedVertices most_visited(const WalkSettings& settings, std::uint64_t walks,
                               std::uint64_t count, std::span<const std::uint64_t> starts,
                               std::uint64_t key) const;

  // Tells whether a walk stays at this vertex.
  bool is_end(std::uint64_t vertex) const;

  const AnyCsr& graph() const { return graph_; }
  std::span<const double> sums() const { return sums_.span(); }  // row_sums(), or empty
  bool sorted() const { return sorted_; }                        // each row ascends

 private:
  AnyCsr graph_;
  Buffer<double> sums_;
  bool sorted_ = false;
};

// Throws what RandomWalks::walk() throws.
void check_walks(const WalkSettings& settings, std::uint64_t vertices,
                 std::span<const std::uint64_t> starts);

}  // namespace plait
