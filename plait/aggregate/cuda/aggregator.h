// Aggregation on GPUs, one per rank: the GPU that is current where make_gpu_aggregator() is called.
// This header needs no header of CUDA; a build without CUDA throws UsageError.
#pragma once

#include <memory>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/base/trace.h"
#include "plait/exchange/row_parts.h"

namespace plait {

// An Aggregator whose arrays are in the GPU's memory, with the calls that measuring and recording
// need.
class GpuAggregator : public Aggregator {
 public:
  // Collective. Enqueues the sum of an array in the GPU's memory over ranks, in place, the same
  // bits on all, without the host.
  virtual void all_reduce_sum(float* values, std::uint64_t count) = 0;
  // Collective. Enqueues the exchange of rows in the GPU's memory between ranks, as many as both
  // sides say: part r of `send` becomes part `rank` of what rank r receives, and a rank sends
  // itself nothing. If a rank is lost, all bits of the rows received are set.
  virtual void exchange_rows(const SentRows& send, const ReceivedRows& received) = 0;
  // Collective, as forward(). Enqueues one part of a sum alone (StepPart). Throws UsageError for
  // strategies other than pipelined and partial.
  virtual void run_part(StepPart part, const float* x, float* y, std::uint64_t width) = 0;
  // Collective. Runs one forward(), waits for it, and returns which part ran when.
  virtual std::vector<TraceSpan> trace(const float* x, float* y, std::uint64_t width) = 0;
  // Returns the number of rows of other ranks that forward() reads.
  virtual std::uint64_t halo_rows() const = 0;
  // Tells whether operations can be recorded and replayed (CUDA graphs): they leave the host out,
  // and the widest rows that there is room for cross as fast when replayed. The same on all ranks.
  // Replayed work does not count in cost().bytes_fetched.
  virtual bool recordable() const = 0;
  // Must be called before the host waits for the stream: the watch over ranks then finds a GPU
  // that hangs.
  virtual void about_to_wait() = 0;
  // recorded_steps() returns the number of steps between GPUs that were recorded so far. A caller
  // that is about to replay steps calls replay() with their number and with the cudaStream_t that
  // they will run on; replay() throws LostRankError as forward() does.
  virtual std::uint32_t recorded_steps() const = 0;
  virtual void replay(std::uint32_t steps, void* stream) = 0;
  // Returns the number of passes over edges of pipelined and partial, the first over local edges; 1
  // for other strategies.
  virtual std::size_t passes(std::uint64_t width) = 0;
};

// Collective. Pointers that operations take are to memory of the GPU; the work is enqueued on the
// stream of the options, and whoever reads y must follow it there. Waits on the GPU last until
// World's watch finds a rank lost. From then on results are NaN, and every operation, check() and
// cost() throw LostRankError.
std::unique_ptr<GpuAggregator> make_gpu_aggregator(World& world, const AnyCsr& graph,
                                                   bool symmetric, const Partition& partition,
                                                   const ExchangeOptions& options);

// Wraps an aggregator so that it takes pointers to the host's memory. Each call copies rows to the
// GPU and back, and waits for the result. Meant for one-off work; of the operations over edges it
// takes extrema without ties only, and throws UsageError for others.
std::unique_ptr<Aggregator> on_host_memory(std::unique_ptr<GpuAggregator> aggregator);

}  // namespace plait
