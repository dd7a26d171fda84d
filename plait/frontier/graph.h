// A graph spread over ranks, as analytics apps see it: the edges of own rows in both directions, in
// one numbering of slots (placement/shard.h), their weights, and the numbers of the vertices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plait/base/host_device.h"
#include "plait/exchange/exchange.h"
#include "plait/graph/dataset.h"

namespace plait {

// The edges of own rows in one direction. Those of row i are begin[i] .. end[i] - 1, and ascend by
// the number of the vertex at their other end. In memory of the graph's device.
struct SlotEdges {
  const EdgeOffset* begin = nullptr;
  const EdgeOffset* end = nullptr;
  const Slot* slots = nullptr;     // the other end of each edge
  const float* weights = nullptr;  // of each edge; null: all weigh 1

  PLAIT_HOST_DEVICE EdgeOffset degree(std::uint64_t row) const { return end[row] - begin[row]; }
  PLAIT_HOST_DEVICE float weight(EdgeOffset e) const { return weights == nullptr ? 1 : weights[e]; }
};

// What the functors of an app read of a graph. It is copied by value into kernels.
struct GraphView {
  SlotEdges in;   // from the vertices that a row reads: edges that lead to the row
  SlotEdges out;  // to the vertices that read the row
  SlotEdges all;  // both; the same as either, if the graph is its own transpose
  std::uint64_t own = 0, slots = 0;
  const std::uint64_t* numbers = nullptr;  // by slot, as Partition::number; null: the slots' own

  PLAIT_HOST_DEVICE std::uint64_t number(std::uint64_t slot) const {
    return numbers == nullptr ? slot : numbers[slot];
  }
};

// A graph placed on this rank. The world and the partition outlive it.
class SpreadGraph {
 public:
  // Collective. Places the graph on the CPU, or on each rank's current GPU. Throws DoesNotFitError
  // and UsageError on all ranks.
  SpreadGraph(World& world, const Dataset& dataset, const Partition& partition, bool gpu,
              DeviceTransport transport = {});

  World& world() const { return world_; }
  const Partition& partition() const { return partition_; }
  std::uint64_t vertices() const { return partition_.vertices(); }
  std::uint64_t own() const { return partition_.size(world_.rank()); }
  // The number of edges of all ranks, each once.
  EdgeOffset edges() const { return edges_; }
  bool symmetric() const { return symmetric_; }
  // Tells whether slots are the numbers of their vertices.
  bool numbered_by_slot() const { return partition_.is_whole() && partition_.numbers().empty(); }
  // Returns the own row of the vertex with this number; nothing if another rank owns it. Throws
  // UsageError if there is no such vertex.
  std::optional<std::uint64_t> row_of(std::uint64_t number) const;

  Exchange& exchange() { return *exchange_; }
  // The messages from halo slots to their owners. A world of one rank has none.
  Messages& messages() { return *messages_; }
  // On the host: the number of edges that lead to each own row, before which none of its outward
  // edges stands; empty if both are the same edges.
  const std::vector<EdgeOffset>& inward() const { return inward_; }

 private:
  World& world_;
  const Partition& partition_;
  const bool symmetric_;
  const EdgeOffset edges_;
  std::vector<EdgeOffset> inward_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Messages> messages_;
};

// Returns the view of a graph. `first_out`: the place of each own row's first outward edge, in the
// device's memory, which outlives the view; null if inward and outward edges are the same.
GraphView view_of(SpreadGraph& graph, const EdgeOffset* first_out);

}  // namespace plait
