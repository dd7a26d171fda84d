// What a strategy on GPUs is. Internal to this room.
#pragma once

#include <functional>
#include <memory>

#include "plait/aggregate/device_graph_cuda.h"
#include "plait/aggregate/gpu_aggregator.h"
#include "plait/aggregate/paged_rows_cuda.h"
#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/spmm_cuda.h"
#include "plait/world/nccl.h"

namespace plait {

// One aggregation: y = diag(post) A diag(pre) x on own rows, fp32, without gaps.
struct DeviceProduct {
  const float* pre;   // or null
  const float* post;  // or null
  bool weighted;
  const float* x;
  float* y;
  std::uint64_t width;
  cudaStream_t stream;

  // Of rows in slots, and on the wire.
  std::uint64_t stride(DType type = DType::f32) const { return row_stride(width, type); }
  std::uint64_t row_bytes(DType type) const { return plait::row_bytes(width, type); }
  DeviceRows<const void> rows(const void* data, DType type = DType::f32) const {
    return {data, type, stride(type)};
  }
  // y, of `count` own rows.
  Results result(std::uint64_t count) const { return {y, count * width}; }
};

// An operation on gathered rows.
struct GatherUse {
  // Enqueues it on the product's stream. `slots`: the row of slot 0, from which rows stand
  // product.stride() floats apart.
  std::function<void(const float* slots)> enqueue;
  std::vector<Results> results;  // that it writes
};

class DeviceStrategy {
 public:
  virtual ~DeviceStrategy() = default;
  // Enqueues the work; all ranks do so.
  virtual void run(const DeviceProduct& product) = 0;
  // Brings the halo behind own rows without summing; rows stay until they have been used. fp32
  // only.
  virtual void gather(const DeviceProduct& product, const GatherUse& use);
  // A part of it alone, to measure (gpu_aggregator.h); the link's part of `partial` holds its sums.
  virtual void run_part(StepPart, const DeviceProduct&) {
    throw UsageError("only pipelined and partial have parts that are measured alone");
  }
  virtual std::size_t passes(const DeviceProduct&) { return 1; }
  // Whether the work leaves the host out, so that it can be recorded, and rows of this width then
  // cross as fast as they do otherwise; the same on all ranks.
  virtual bool recordable(std::uint64_t width) const = 0;
  // Bytes that an aggregation of this width brings to this rank.
  virtual std::uint64_t bytes_fetched(std::uint64_t width) const = 0;
};

// The graph and the link outlive the strategy. Of a graph with sums, pipelined is `partial`.
std::unique_ptr<DeviceStrategy> make_pipelined(const DeviceGraph& graph, DeviceLink& link,
                                               const std::vector<double>& pass_shares);
std::unique_ptr<DeviceStrategy> make_device_bulk(const DeviceGraph& graph, DeviceLink& link,
                                                 Nccl* nccl, bool sum_by_cusparse);
std::unique_ptr<DeviceStrategy> make_device_get(const DeviceGraph& graph, DeviceLink& link,
                                                const GetTuning& tuning);
std::unique_ptr<DeviceStrategy> make_paged(const DeviceGraph& graph, DeviceLink& link,
                                           PagedRows& rows);

// The sum of a shard in passes, each over the edges to a range of slots.
class Passes {
 public:
  // Own edges first, then those up to each cut of the halo (halo_schedule.h); without cuts, all
  // edges in one pass.
  Passes(const DeviceGraph& graph, const std::vector<std::uint64_t>& cuts, cudaStream_t stream);

  std::size_t count() const { return groups_.size(); }
  // Takes the memory that run() needs for rows of this width, so that a step that does not fit
  // fails before anything of it is enqueued.
  void reserve(std::uint64_t width);
  // Pass 0 writes y, the others add to it. `rows`: where slot 0 stands or would stand.
  void run(std::size_t pass, const DeviceProduct& product, DeviceRows<const void> rows);

 private:
  const DeviceGraph& graph_;
  std::vector<RowGroups> groups_;
  DeviceArray<float> partial_sums_;
};

// Sums of own rows that a peer gets instead of the rows (strategy `partial`).
class PeerSums {
 public:
  // `own`: rows of this rank. The sums outlive this.
  PeerSums(const RowSums& sums, std::uint64_t own, cudaStream_t stream);

  // As Passes::reserve().
  void reserve(std::uint64_t width) { partial_sums_.reserve(spmm_scratch(groups_, width)); }
  // Enqueued on the stream: out, sums.count() rows as in slots, from own rows, which stand scaled.
  void run(const DeviceProduct& product, const float* own, float* out, cudaStream_t stream);

 private:
  const RowSums& sums_;
  std::uint64_t own_;
  RowGroups groups_;
  DeviceArray<float> partial_sums_;
};

// Throws UsageError if what is needed for rows of this width is not known yet while the stream is
// recorded: no memory can be taken then.
void require_known(bool known, std::uint64_t width, cudaStream_t stream);
// Throws UsageError if steps were recorded, which use memory that is about to move.
void require_movable(bool recorded, std::uint64_t width);

// Where slot 0 of `rank` would stand if own rows were stored as the halo is: they are fp32, the
// halo behind them is of the wire's type.
std::byte* slot_zero(const DeviceGraph& graph, const DeviceLink& link, int rank,
                     const DeviceProduct& product);

// Where own rows stand, as in slots, that the sum reads: x itself, or a copy in own slots, which is
// enqueued on the product's stream, where x must be scaled, is not padded as slots are, or must
// stand before the halo (`beside_halo`). The copy streams 8 bytes a number; read as it is, an x
// that is not padded takes the sum twice as long.
const float* place_own_rows(const DeviceProduct& product, const DeviceGraph& graph,
                            DeviceLink& link, bool beside_halo);

}  // namespace plait
