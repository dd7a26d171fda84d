// Operations over the edges of a rank's shard on its GPU that are no plain sums (attention_cuda.h,
// max_rows_cuda.h), after the strategy has brought the rows. Internal to this room.
#pragma once

#include <memory>

#include "plait/aggregate/device_strategy_cuda.h"
#include "plait/kernels/attention.h"
#include "plait/kernels/max_rows.h"
#include "plait/kernels/row_groups_cuda.h"

namespace plait {

class DeviceEdges {
 public:
  // The graph outlives this. `vertices`: the global id of each slot, for dropout, or empty.
  DeviceEdges(const DeviceGraph& graph, DeviceArray<std::uint64_t> vertices)
      : graph_(graph), vertices_(std::move(vertices)) {}

  // Own rows, and the strategy and the stream by which they come.
  struct Rows {
    const float* rows;
    DeviceStrategy& strategy;
    cudaStream_t stream;
    bool recorded;  // steps were, which use the scratch that there is
  };
  // As Aggregator's, in this graph's direction.
  void attention(const Rows& rows, AttentionForward operation);
  void attention_backward(const Rows& rows, AttentionBackward operation);
  void max_rows(const Rows& rows, MaxForward operation);
  void max_rows_backward(const Rows& rows, MaxBackward operation);

 private:
  template <class Operation, class Scratch, class Kernel>
  void run(const Rows& rows, std::uint64_t width, Operation& operation,
           const Scratch& scratch_floats, const Kernel& kernel);
  void set_vertices(AttentionDropout& dropout) const;

  const DeviceGraph& graph_;
  DeviceArray<std::uint64_t> vertices_;
  std::unique_ptr<RowGroups> groups_;  // made when first used
  DeviceArray<float> scratch_;
};

}  // namespace plait
