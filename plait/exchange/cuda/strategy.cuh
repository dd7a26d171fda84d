// The interface of strategies on GPUs, and functions that they share. Internal to this room.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "plait/exchange/cuda/graph.cuh"
#include "plait/exchange/cuda/paged_rows.cuh"
#include "plait/exchange/cuda/passes.cuh"
#include "plait/exchange/cuda/step_memory.cuh"
#include "plait/exchange/options.h"
#include "plait/world/nccl.h"

namespace plait {

class GetModule;

// One aggregation: y = diag(post) A diag(pre) x. x and y hold own rows, fp32, without gaps; all
// pointers are to memory of the GPU.
struct DeviceProduct {
  const float* pre;   // one factor per row that is read, or null: all 1
  const float* post;  // one factor per row of y, or null: all 1
  bool weighted;      // by the edge weights, if the graph has some
  const float* x;
  float* y;
  std::uint64_t width;
  cudaStream_t stream;

  // Strides, in elements and in bytes, of rows as they stand in slots and cross the wire in this
  // type.
  std::uint64_t stride(DType type = DType::f32) const { return row_stride(width, type); }
  std::uint64_t row_bytes(DType type) const { return plait::row_bytes(width, type); }
  DeviceRows<const void> rows(const void* data, DType type = DType::f32) const {
    return {data, type, stride(type)};
  }
  // Returns y, which has `count` own rows.
  Results result(std::uint64_t count) const {
    return std::as_writable_bytes(std::span(y, count * width));
  }
};

// Work on gathered rows.
struct GatherEnqueue {
  // Enqueues a pass of the work on the product's stream. `slots`: where slot 0 stands or would
  // stand; rows are product.stride() floats apart. Of several passes, the first sees own rows
  // alone, and each later one the rows of the halo that its edges read.
  std::function<void(const float* slots, std::size_t pass)> enqueue;
  std::vector<Results> results;  // the arrays that it writes
  // An operation over edges that is done in the passes of pass_groups() for these widths. Without
  // them, the work is done once, as pass 0, on all rows.
  std::optional<PassWidths> widths = {};
};

// One strategy on one placed graph. Functions named prepare... are called within
// DeviceLink::prepare(): they take memory and make lists that stay, which waits for the stream, and
// throw UsageError for what the strategy does not do, and DoesNotFitError. The functions that
// enqueue work are collective, are called within DeviceLink::operation() once the matching one has
// succeeded on all ranks for rows of the same width, and return before the work is done, unless the
// strategy needs the host (`paged`).
class DeviceStrategy {
 public:
  virtual ~DeviceStrategy() = default;
  virtual void prepare(const DeviceProduct& product) = 0;
  // Enqueues the product on its stream.
  virtual void run(const DeviceProduct& product) = 0;
  // `widths`: as in GatherEnqueue. Without an override, the strategy makes sums only.
  virtual void prepare_gather(const DeviceProduct& product,
                              const std::optional<PassWidths>& widths);
  // Brings the halo behind own rows without summing, and enqueues `use` on them; rows stay until
  // they have been used.
  virtual void gather(const DeviceProduct& product, const GatherEnqueue& use);
  // Returns the groups of the passes in which gather() has an operation over edges done, after
  // prepare_gather(): one pass unless the strategy overlaps them with the link. They live as long
  // as the strategy.
  virtual std::span<const RowGroups> pass_groups(const DeviceProduct& product,
                                                 const PassWidths& widths);
  // Strategies other than pipelined and partial have no parts.
  virtual void prepare_part(StepPart, const DeviceProduct&) {
    throw UsageError("only pipelined and partial have parts that are measured alone");
  }
  // Enqueues one part of the product alone, to measure (StepPart). The link's part of `partial`
  // includes its sums for peers.
  virtual void run_part(StepPart, const DeviceProduct&) {}
  // Returns the number of passes over edges that the product takes.
  virtual std::size_t passes(const DeviceProduct&) { return 1; }
  // Tells whether the work leaves the host out, so that it can be recorded. The same on all ranks.
  virtual bool can_be_recorded() const { return true; }
  // Tells whether it can, and rows of `width` floats then cross as fast as they do otherwise.
  virtual bool recordable(std::uint64_t) const { return can_be_recorded(); }
  // Returns the bytes that one aggregation of rows of `width` floats brings to this rank.
  virtual std::uint64_t bytes_fetched(std::uint64_t width) const = 0;
};

// Make one strategy each. The graph and the link, `nccl` and `rows` outlive it. For a graph with
// sums, pipelined is `partial`. `nccl` is null where there is one rank. `module`: see
// module_for_get().
std::unique_ptr<DeviceStrategy> make_pipelined(const DeviceGraph& graph, DeviceLink& link,
                                               const std::vector<double>& pass_shares);
std::unique_ptr<DeviceStrategy> make_device_bulk(const DeviceGraph& graph, DeviceLink& link,
                                                 Nccl* nccl, bool sum_by_cusparse);
std::unique_ptr<DeviceStrategy> make_device_get(const DeviceGraph& graph, DeviceLink& link,
                                                const GetTuning& tuning, const GetModule* module);
std::unique_ptr<DeviceStrategy> make_paged(const DeviceGraph& graph, DeviceLink& link,
                                           PagedRows& rows);

// Collective, on the transport of NVSHMEM if the settings read by its device functions. Returns the
// kernels that do, ready to run, or null for other settings. Throws as GetModule::load() and
// Nvshmem::prepare().
const GetModule* module_for_get(World& world, const GetTuning& tuning);

// Sums of own rows that a peer gets instead of the rows (strategy `partial`).
class PeerSums {
 public:
  // `own`: number of own rows. `sums` outlives this object.
  PeerSums(const RowSums& sums, std::uint64_t own, cudaStream_t stream);

  // As Passes::prepare(); `captured` as in StepMemory::reserve().
  void prepare(std::uint64_t width, bool captured) {
    require_summable(width);
    partial_sums_.reserve(spmm_scratch(groups_, width), captured);
  }
  // Enqueues on the stream the sums of own rows, which stand scaled at `own`, after prepare() for
  // the width. They go to `out`: sums.count() rows, as in slots.
  void run(const DeviceProduct& product, const float* own, float* out, cudaStream_t stream);

 private:
  const RowSums& sums_;
  std::uint64_t own_;
  RowGroups groups_;
  StepMemory partial_sums_;
};

// Throws UsageError if the stream is being recorded: no memory for work on rows of this width can
// be taken then.
void require_unrecorded(std::uint64_t width, cudaStream_t stream);

// Returns where slot 0 of `rank` would stand if own rows were stored as the halo is. Own rows are
// fp32; the halo behind them has the wire's type.
std::byte* slot_zero(const DeviceGraph& graph, const DeviceLink& link, int rank,
                     const DeviceProduct& product);

// Returns where own rows stand, padded as in slots, for the sum to read: x itself, or a copy in own
// slots. The copy is enqueued on the product's stream if x must be scaled, is not padded, or must
// stand before the halo (`beside_halo`). The copy moves 8 bytes per number; reading an x without
// padding would make the sum take twice as long.
const float* place_own_rows(const DeviceProduct& product, const DeviceGraph& graph,
                            DeviceLink& link, bool beside_halo);

}  // namespace plait
