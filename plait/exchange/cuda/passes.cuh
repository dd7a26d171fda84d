// A shard's edges in passes, each over the edges to a range of slots, and the sum in passes.
// Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "plait/exchange/cuda/graph.cuh"
#include "plait/exchange/cuda/step_memory.cuh"
#include "plait/kernels/cuda/spmm.cuh"

namespace plait {

struct DeviceProduct;

// The neighbour groups of a graph's passes, which sums and other operations over edges share. They
// are made when they are first asked for, and kept.
class PassGroups {
 public:
  // The graph outlives this object.
  explicit PassGroups(const DeviceGraph& graph) : graph_(graph) {}

  // Returns the groups by pass. The first pass takes local edges, and has a group for every row;
  // the next ones take the edges up to each cut of the halo (halo_schedule.h). Without cuts, one
  // pass takes all edges. Groups that are new are made, which waits for the stream. Throws
  // DoesNotFitError.
  std::span<const RowGroups> of(const std::vector<std::uint64_t>& cuts, cudaStream_t stream);

 private:
  const DeviceGraph& graph_;
  std::map<std::vector<std::uint64_t>, std::vector<RowGroups>> groups_;  // by cuts
};

// Throws UsageError for rows of more floats than a sum takes.
void require_summable(std::uint64_t width);

// The sum of a shard in passes.
class Passes {
 public:
  // `groups`: of PassGroups. The graph, the groups and the link, which knows whether steps were
  // captured, outlive the passes.
  Passes(const DeviceGraph& graph, const DeviceLink& link, std::span<const RowGroups> groups)
      : graph_(graph), link_(link), groups_(groups) {}

  // Returns the number of passes.
  std::size_t count() const { return groups_.size(); }
  // Takes the memory that run() needs for rows of `width` floats. Throws DoesNotFitError, and as
  // require_summable().
  void prepare(std::uint64_t width);
  // Enqueues one pass on the product's stream. Pass 0 writes y, the others add to it. `rows`: where
  // slot 0 stands or would stand.
  void run(std::size_t pass, const DeviceProduct& product, DeviceRows<const void> rows);

 private:
  const DeviceGraph& graph_;
  const DeviceLink& link_;
  std::span<const RowGroups> groups_;
  StepMemory partial_sums_;
};

}  // namespace plait
