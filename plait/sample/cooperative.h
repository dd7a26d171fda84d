// Cooperative mini-batches: all ranks sample one large batch together (Balin, LaSalle and
// Çatalyürek, "Cooperative Minibatching in Graph Neural Networks", 2023).
//
// A vertex belongs to one rank, by a partition. A hop's targets that a rank owns are its targets:
// it draws their edges, and asks the owners of new vertices to make those targets of the next hop.
// So each vertex of the batch is a target once over all ranks, where ranks that sample for
// themselves draw and compute a vertex once each. Draws depend on the vertex and the hop (draw.h):
// the parts of all ranks together are the sample of one rank, with HopTargets::all.
//
// A layer then computes a rank's own targets, from rows that the layer before has computed on the
// ranks that own them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/channel.h"
#include "plait/base/raw_vector.h"
#include "plait/partition/partition.h"
#include "plait/sample/neighbours.h"

namespace plait {

// Where the rows of a hop's inputs come from: rows that this rank has of its own targets of the
// next hop, and rows that it receives. Each is in one place of the inputs at most.
struct SharedRows {
  std::uint64_t own = 0;                     // targets of the next hop
  std::vector<std::uint64_t> sent_to;        // by rank: numbers of own rows that go there
  RawVector<std::uint64_t> sent;             // the own rows, in the order of ranks
  std::vector<std::uint64_t> received_from;  // by rank: numbers of rows
  // By input: its own row or, from `own` on, its place among the received rows, which are in the
  // order of ranks. The hop's targets come first, and are the first own rows.
  RawVector<std::uint64_t> places;

  std::uint64_t received() const;
};

// Throws UsageError for settings that are disjoint or have other targets than all.
void check_cooperative(const SampleSettings& settings);

// The targets of a rank, while ranks sample a batch together, by whatever they draw edges.
class CooperativeTargets {
 public:
  // The partition and the channel outlive this. Throws UsageError if the partition does not suit a
  // graph of so many vertices, or has no part `rank`.
  CooperativeTargets(std::uint64_t vertices, const Partition& partition, int rank,
                     Channel& channel);

  // Begins a batch of these seeds. Throws UsageError for a seed of another rank, or one that is
  // given twice.
  void begin(std::span<const std::uint64_t> seeds);
  // Returns the targets of the next hop, each once, the seeds first.
  std::span<const std::uint64_t> vertices() const { return vertices_; }
  // Collective. Makes the inputs of a hop that this rank owns, here or elsewhere, targets of the
  // next hop. `inputs`: different vertices, beginning with the targets so far. Returns where their
  // rows come from. Throws as Channel::all_to_all(), and Error if a rank asks another rank for a
  // vertex that the other rank does not own, as it does where partitions differ.
  SharedRows share(std::span<const std::uint64_t> inputs);

 private:
  bool owns(std::uint64_t vertex) const;
  std::uint32_t number_of(std::uint64_t vertex);

  const Partition& partition_;
  const int rank_;
  Channel& channel_;
  // By own row: the number of the vertex among the targets of this batch, or 2^32 - 1.
  Buffer<std::uint32_t> numbers_;
  std::vector<std::uint64_t> vertices_;
};

// A rank's part of a hop.
struct CooperativeHop {
  // The sample of this hop alone. Its seeds are the rank's targets, and its vertices all inputs.
  Sample sample;
  SharedRows rows;  // of all hops but the last, whose inputs are the vertices themselves
};

// Samples together with the other ranks, by one thread of each.
class CooperativeSampler {
 public:
  // The partition, the channel and the arrays of `values` outlive the sampler. `rank`: the part of
  // this rank. Throws UsageError as NeighbourSampler, and for settings that are disjoint or have
  // other targets than all.
  CooperativeSampler(const AnyCsr& graph, const SampleSettings& settings,
                     const SampleValues& values, const Partition& partition, int rank,
                     Channel& channel);
  ~CooperativeSampler();

  // Collective, with the same key. Returns this rank's part of each hop. `seeds`: different
  // vertices, which this rank owns, of any number. Throws as NeighbourSampler::sample() and
  // Channel::all_to_all(), UsageError for a seed of another rank, and Error if a rank asks for a
  // vertex of another one, as it does where partitions differ. Of no use after an error.
  std::vector<CooperativeHop> sample(std::span<const std::uint64_t> seeds, std::uint64_t key);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plait
