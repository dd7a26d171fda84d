// What all strategies on GPUs share: a rank's part of the graph, and what joins its GPU to the
// others. Internal to this room.
#pragma once

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "plait/aggregate/device_trace_cuda.h"
#include "plait/base/dtype.h"
#include "plait/base/error.h"
#include "plait/kernels/row_cut.h"
#include "plait/placement/device_block_sums_cuda.h"
#include "plait/plan/halo_schedule.h"
#include "plait/symmetric/signals_cuda.h"
#include "plait/world/world.h"

namespace plait {

// Rows of this rank that a peer reads, or sums of them.
struct SendBlock {
  int peer = 0;
  std::uint64_t slot = 0;  // of the first, at the peer
  std::uint64_t rows = 0;
  bool whole = false;              // all own rows, in order
  DeviceArray<std::uint32_t> row;  // else: which
  RowSums sums;                    // what is sent instead, `rows` of them; or none

  bool in_order() const { return whole || sums.count() > 0; }
};

// A graph, or its transpose.
struct DeviceGraph {
  DeviceShard shard;
  DeviceArray<std::uint32_t> clusters;  // see reorder/clusters.h
  // In the order of sending: to rank - 1, rank - 2, ... All ranks do so at once, so each receives
  // from one other at a time: first from rank + 1, whose rows are the first block of its halo.
  std::vector<SendBlock> send;
  // Of all ranks: what each has to do, and the rows of its halo by which each block of it ends.
  std::vector<RankLoad> loads;
  std::vector<std::vector<std::uint64_t>> block_ends;
  // Edges are in the order of the whole graph: a row is summed in one pass, cut at fixed places, in
  // an order that does not depend on the ranks.
  bool fixed_order = false;

  // Edges in a group of rows with so many edges in all.
  std::uint32_t group_edges(EdgeOffset edges) const {
    return fixed_order ? kFixedGroup : group_size(edges, shard.own);
  }
};

struct DeviceGraphOptions {
  bool with_sums = false;    // sums come instead of rows where they are fewer (strategy `partial`)
  bool fixed_order = false;  // the shard was made with EdgeOrder::as_given
};

// Collective.
DeviceGraph make_device_graph(World& world, DeviceShard shard, const DeviceGraphOptions& options,
                              cudaStream_t stream);

// Each rank's slots in the symmetric heap, the signals, and a stream for what crosses the link.
class DeviceLink {
 public:
  // Collective. The transports of what kernels of several GPUs use: signals and room for sums over
  // ranks, and slots.
  struct Transports {
    DeviceTransport signals, slots;
  };
  DeviceLink(World& world, DType wire, Transports transports);
  ~DeviceLink();
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  // An operation in which all ranks take part: `work` enqueues it, on this stream above all. Throws
  // LostRankError if a rank is lost or an operation before has failed. If `work` throws after some
  // of it was enqueued, no rank gets a result any more.
  template <class Work>
  void operation(cudaStream_t stream, const Work& work) {
    const bool recorded = is_recorded(stream);
    begin(recorded);
    try {
      work();
    } catch (const UsageError&) {  // on all ranks, before anything was enqueued
      throw;
    } catch (...) {
      if (!recorded) signals_.abandon(stream_);
      throw;
    }
    was_recorded_ = was_recorded_ || recorded;
  }
  // Whether an operation was: replays use the slots where they are.
  bool was_recorded() const { return was_recorded_; }
  // Recorded steps are about to be replayed.
  void replayed(std::uint32_t steps);
  // While an exception destroys the owner of this link: waits on this GPU end, so that it can be
  // waited for.
  void abandon_if_unwinding();

  // Room for `bytes` of slots on every rank, the largest of what any asks for; collective. As
  // Aggregator::reserve() where it does not fit.
  void reserve(std::uint64_t bytes);
  bool lost() const { return !heap_; }

  // The sum of an array over ranks, the same bits on all; on the GPU alone. T: float or double.
  template <class T>
  void all_reduce_sum(T* values, std::uint64_t count, cudaStream_t stream);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  DType wire() const { return wire_; }
  std::byte* slots(int rank) const { return heap_->part(rank); }
  DeviceSignals& signals() { return signals_; }
  const DeviceSignals& signals() const { return signals_; }
  cudaStream_t stream() const { return stream_; }
  // A stream that follows what stream() has been given so far, so that a signal does not stand
  // between two copies.
  cudaStream_t after_copies() {
    follow(signal_stream_, stream_);
    signals_follow_ = true;
    return signal_stream_;
  }
  // From here to the end of the scope, in the trace, if one is taken.
  DeviceTrace::Span span(const char* name, std::size_t number, const char* lane,
                         cudaStream_t stream) {
    return {trace_, name, number, lane, stream};
  }
  void set_trace(DeviceTrace* trace) { trace_ = trace; }  // null: none

  // What comes on one stream from here follows what has come on the other.
  void follow(cudaStream_t stream) { follow(stream_, stream); }
  void let_follow(cudaStream_t stream) {
    follow(stream, stream_);
    // A stream that was given nothing must not be followed by one that is recorded.
    if (std::exchange(signals_follow_, false)) follow(stream, signal_stream_);
  }

 private:
  void begin(bool recorded);
  static constexpr std::size_t kReduceBytes = 1 << 20;  // of each rank, summed at once

  void follow(cudaStream_t later, cudaStream_t earlier);

  World& world_;
  int rank_, ranks_;
  DType wire_;
  Transports transports_;
  std::unique_ptr<DeviceHeap> flags_;  // and room for sums over ranks
  DeviceSignals signals_;
  std::unique_ptr<DeviceHeap> heap_;
  cudaStream_t stream_ = nullptr, signal_stream_ = nullptr;
  bool signals_follow_ = false;  // since the last let_follow()
  bool was_recorded_ = false;
  const int exceptions_ = std::uncaught_exceptions();
  DeviceEvent event_;
  DeviceTrace* trace_ = nullptr;
};

}  // namespace plait
