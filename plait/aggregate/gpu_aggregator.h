// Aggregation on GPUs: one a rank, the current one where make_gpu_aggregator() is called. No header
// of CUDA is needed here; a build without CUDA refuses.
#pragma once

#include <memory>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/base/dtype.h"
#include "plait/base/trace.h"
#include "plait/symmetric/device_transport.h"

namespace plait {

// Of strategy `get`, by MGG's names (kernels/get_cuda.h); none changes what is summed.
struct GetTuning {
  std::uint32_t ps = 16;     // neighbours in a group, 1 to 32
  std::uint32_t dist = 2;    // groups of either kind that a warp takes turns with, 1 to 16
  std::uint32_t wpb = 4;     // warps a block, 1 to 16
  bool asynchronous = true;  // fetch the next remote rows while summing
};

struct GpuAggregatorOptions {
  Strategy strategy = Strategy::automatic;
  ShardOptions shards;  // `halo` follows from the strategy
  std::uint64_t max_width = 0;
  DType wire = DType::f32;  // how rows travel between GPUs: f32 or bf16
  DeviceTransport transport = DeviceTransport::vmm;
  void* stream = nullptr;  // the cudaStream_t that x and y are made and used on
  GetTuning get = {};
  // Of `pipelined` and `partial`: shares of the halo by which passes end, ascending; empty: chosen
  // by plan/halo_schedule.h. The same on all ranks.
  std::vector<double> pass_shares = {};
  // To compare with: `bulk`, whose sum is cuSPARSE's, without scaling.
  bool sum_by_cusparse = false;
};

// What an aggregation is made of, each alone, to measure; the result means nothing.
enum class StepPart {
  link,  // the halo crosses
  sum,   // one pass over all edges
};

class GpuAggregator : public Aggregator {
 public:
  // Collective: the sum of an array in the GPU's memory over ranks, the same bits on all, without
  // the host.
  virtual void all_reduce_sum(float* values, std::uint64_t count) = 0;
  // Collective, as forward(); of pipelined and partial, others throw UsageError.
  virtual void run_part(StepPart part, const float* x, float* y, std::uint64_t width) = 0;
  // What ran when in one forward(); collective.
  virtual std::vector<TraceSpan> trace(const float* x, float* y, std::uint64_t width) = 0;
  virtual std::uint64_t halo_rows() const = 0;
  // Whether what operations enqueue can be recorded and replayed (CUDA graphs): they leave the host
  // out, and rows of the widest that there is room for cross as fast when replayed. The same on all
  // ranks. Replayed work does not count in cost().bytes_fetched.
  virtual bool recordable() const = 0;
  // Before the host waits for what the stream was given: the watch over ranks then finds a GPU that
  // hangs in it.
  virtual void about_to_wait() = 0;
  // Steps between GPUs that were recorded so far. Whoever replays some says so before, and learns
  // of lost ranks as from forward().
  virtual std::uint32_t recorded_steps() const = 0;
  virtual void replay(std::uint32_t steps) = 0;
  // Passes of pipelined and partial, the first over own edges; 1 of other strategies.
  virtual std::size_t passes(std::uint64_t width) = 0;
};

// Collective. Pointers that forward() and backward() take are to memory of the GPU; the work is
// enqueued on the stream, and whoever reads y follows on the stream. Waits on the GPU last until
// World's watch finds a rank lost. From then on results are NaN, and every operation, check() and
// cost() throw LostRankError.
std::unique_ptr<GpuAggregator> make_gpu_aggregator(World& world, const AnyCsr& graph,
                                                   bool symmetric, const Partition& partition,
                                                   const GpuAggregatorOptions& options);

// The same for pointers to the host's memory: rows are copied to the GPU and back each time, and
// the call returns when that is done. For one-off work.
std::unique_ptr<Aggregator> on_host_memory(std::unique_ptr<GpuAggregator> aggregator);

}  // namespace plait
