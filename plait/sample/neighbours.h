// Neighbour sampling: from seeds to the part of the graph that a mini-batch computes on (Hamilton,
// Ying and Leskovec, NeurIPS 2017; WholeGraph, section 4).
//
// Each hop draws some edges of each of its targets and gives the vertices at their other ends
// numbers in the sample: seeds first, then each new vertex in the order in which edges reach it,
// hop after hop (append-unique, WholeGraph, section 4.2). Message passing on the sample needs only
// these numbers, the vertices' ids and the edges' ids.
//
// The sample depends on the seeds, the key and the settings alone (draw.h). A target's edges are in
// the order of its row if all are taken, if they are the latest, or if they are drawn by weight
// without replacement; else in the order in which they are drawn.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plait/base/raw_vector.h"
#include "plait/graph/csr.h"

namespace plait {

// The targets of a hop.
enum class HopTargets : std::uint8_t {
  // The vertices that the hop before has found, so that each is a target once, as in PyG.
  newest,
  // All vertices that were found so far, with new draws at each hop, as in WholeGraph. A layer's
  // result for a vertex then does not depend on the other seeds of the batch.
  all,
};

// The part of a row from which temporal samples draw.
enum class TimeRule : std::uint8_t {
  uniform,  // of all edges that are not later than the seed
  last,     // the latest of them; of edges of one time the first in the row
};

struct SampleSettings {
  std::vector<std::int64_t> fanouts;  // edges per target, by hop; -1: all
  bool replace = false;               // an edge may be drawn more than once
  bool disjoint = false;              // each seed has vertices of its own
  HopTargets targets = HopTargets::newest;
  TimeRule time = TimeRule::uniform;
};

// Values of the graph that samples may depend on. Spans are empty where there are none.
struct SampleValues {
  // One per edge, in the order of the CSR: the chance to be drawn is proportional. Finite and >= 0;
  // edges of weight 0 are never drawn, not even if all edges are.
  std::span<const float> weights;
  // Of edges, of vertices, or both: an edge is drawn only if neither it nor its source is later
  // than the seed. Its time is the later of the two.
  std::span<const std::int64_t> edge_times, vertex_times;

  bool timed() const { return !edge_times.empty() || !vertex_times.empty(); }
};

// A sample. Numbers of vertices are places in `vertices`.
struct Sample {
  struct Hop {
    std::uint64_t first_target = 0;       // targets have consecutive numbers from here on
    RawVector<std::uint32_t> offsets;     // targets + 1 numbers, the first 0
    RawVector<std::uint32_t> neighbours;  // one per edge: the number of its source
    RawVector<EdgeOffset> edges;          // one per edge: its place in the CSR
    std::uint64_t vertices = 0;           // found so far, this hop included

    std::uint64_t targets() const { return offsets.size() - 1; }
  };
  std::uint64_t seeds = 0;
  RawVector<std::uint64_t> vertices;  // ids, the seeds first
  RawVector<std::uint32_t> trees;     // disjoint: the number of the seed of each vertex; else empty
  std::vector<Hop> hops;
};

// Samples one graph. sample() may be called by several threads at once, each with its own
// workspace.
class NeighbourSampler {
 public:
  // Memory that calls reuse: 4 bytes per vertex of the graph.
  class Workspace {
   public:
    ~Workspace();

   private:
    friend class NeighbourSampler;
    struct State;
    explicit Workspace(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  // The arrays of `values` outlive the sampler. Throws UsageError for a fan-out that is neither -1
  // nor in 1 .. kMostFanout, more than 256 hops, values of another length than the graph's, weights
  // that are negative, infinite or no numbers, times without `disjoint`, TimeRule::last without
  // times, with weights or with replacement, and draws by weight without replacement from rows of
  // more than kMostWeighted edges; DoesNotFitError for 2^32 - 1 vertices or more.
  NeighbourSampler(AnyCsr graph, SampleSettings settings, const SampleValues& values = {});
  ~NeighbourSampler();

  // Returns the settings that the sampler was made with.
  const SampleSettings& settings() const;

  // Returns a sample of seeds, any number, which may repeat: each place in `seeds` is a vertex of
  // its own in the sample, and edges that reach a repeated seed are numbered by its first place.
  // `times`: one per seed if the graph has times, else empty. `first_tree`: in disjoint samples,
  // the number that keys the first seed's draws, so that parts of a batch that are sampled
  // one by one are the sample of the whole. Throws UsageError for a seed that is no vertex, with
  // its place; DoesNotFitError if seeds and edges of the sample are together 2^32 - 1 or more.
  Sample sample(std::span<const std::uint64_t> seeds, std::uint64_t key, Workspace& workspace,
                std::span<const std::int64_t> times = {}, std::uint32_t first_tree = 0) const;

  // Returns a sample of one hop, counted from 0, whose targets are the seeds: the draws that
  // sample() makes of these vertices in this hop. Not for disjoint samples. Throws as sample(), and
  // UsageError for a hop that there is not.
  Sample sample_hop(std::size_t hop, std::span<const std::uint64_t> seeds, std::uint64_t key,
                    Workspace& workspace) const;

  // Returns a workspace for calls by one thread at a time.
  std::unique_ptr<Workspace> workspace() const;

 private:
  struct State;
  struct Draws {
    std::size_t begin_hop, end_hop;
    std::uint64_t key;
    std::uint32_t first_tree;
  };
  Sample sample_hops(const Draws& draws, std::span<const std::uint64_t> seeds, Workspace& workspace,
                     std::span<const std::int64_t> times) const;

  std::unique_ptr<const State> state_;
};

// The same in plain loops and one thread: the oracle. Takes time quadratic in the fan-outs.
Sample sample_neighbours_reference(const AnyCsr& graph, const SampleSettings& settings,
                                   const SampleValues& values, std::span<const std::uint64_t> seeds,
                                   std::uint64_t key, std::span<const std::int64_t> times = {});

}  // namespace plait
