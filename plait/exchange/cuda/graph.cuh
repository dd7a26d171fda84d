// State that all strategies on GPUs share: a rank's part of the graph, and the link that joins its
// GPU to the others. Internal to this room.
#pragma once

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "plait/base/cuda/gpu_stream.cuh"
#include "plait/base/dtype.h"
#include "plait/base/fault.h"
#include "plait/exchange/cuda/trace.cuh"
#include "plait/kernels/row_cut.h"
#include "plait/placement/cuda/block_sums.cuh"
#include "plait/plan/halo_schedule.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/signals.cuh"
#include "plait/world/world.h"

namespace plait {

// Rows of this rank, or sums of them, that one peer reads.
struct SendBlock {
  int peer = 0;
  std::uint64_t slot = 0;  // of the first row, at the peer
  std::uint64_t rows = 0;
  bool whole = false;              // all own rows, in order
  DeviceArray<std::uint32_t> row;  // if not whole: the own rows to send, in order
  RowSums sums;                    // the `rows` sums that are sent instead of rows; or none

  // Tells whether the rows to send stand one after the other, so that they need not be picked.
  bool in_order() const { return whole || sums.count() > 0; }
};

// A graph, or its transpose, on one rank's GPU.
struct DeviceGraph {
  DeviceShard shard;
  DeviceArray<std::uint32_t> clusters;  // by row; see reorder/work_order.h
  // In the order of sending: to rank - 1, rank - 2, and so on. All ranks do so at once, so each
  // receives from one other at a time: first from rank + 1, whose rows are the first block of its
  // halo.
  std::vector<SendBlock> send;
  // By rank: the work of each, and the rows of its halo at which each of its blocks ends.
  std::vector<RankLoad> loads;
  std::vector<std::vector<std::uint64_t>> block_ends;
  // Edges are in the order of the whole graph: a row is summed in one pass, cut at fixed places, in
  // an order that does not depend on the number of ranks.
  bool fixed_order = false;
  std::uint32_t asked_group_edges = 0;  // GpuTuning::group_edges

  // Returns the most edges of a neighbour group if the shard's rows have `edges` edges in all.
  std::uint32_t group_edges(EdgeOffset edges) const {
    if (fixed_order) return kFixedGroup;
    return asked_group_edges > 0 ? asked_group_edges : group_size(edges, shard.own);
  }
};

// Options of make_device_graph().
struct DeviceGraphOptions {
  bool with_sums = false;    // sums come instead of rows where they are fewer (strategy `partial`)
  bool fixed_order = false;  // the shard was made with EdgeOrder::as_given
};

// Collective. Takes a shard on the current GPU, finds the order of its work, and tells every owner
// which rows the other ranks read. Waits for the GPU.
DeviceGraph make_device_graph(World& world, DeviceShard shard, const DeviceGraphOptions& options,
                              cudaStream_t stream);

// The operations of a link, for step_kind().
enum class LinkOperation : std::uint64_t { sum, gather, passes, all_reduce, rows, part, push };

// One rank's end of the link between GPUs: its slots in the symmetric heap, the signals, and a
// stream for data that cross the link.
class DeviceLink {
 public:
  // The memory that kernels of several GPUs use: one transport for signals and the room for sums
  // over ranks, one for slots.
  struct Transports {
    DeviceTransport signals, slots;
  };
  // Collective. `wire`: the type in which rows cross. The world outlives the link. If one rank
  // lacks memory or streams, all throw.
  DeviceLink(World& world, DType wire, Transports transports);
  ~DeviceLink();
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  // Collective. Lets `work` make something ready for operations: memory, or lists that are kept.
  // It enqueues nothing that other ranks see. If it throws on any rank, all ranks throw, as
  // on_all_or_none() does, and operations that were ready before may go on.
  template <class Work>
  void prepare(const Work& work) {
    if (ranks_ == 1) return work();
    world_.begin_operation(place_);
    on_all_or_none(world_, [&] {
      signals_->check();
      work();
    });
  }

  // Runs an operation in which all ranks take part: `work` enqueues it, on this stream above all.
  // `kind` is the same on all ranks (step_kind()); operations of other kinds do not pair with it.
  // Throws LostRankError if a rank is lost or an earlier operation has failed. If `work` throws, no
  // rank gets a result any more, because other ranks may see a part of it; if it was to be
  // recorded, the recording becomes invalid. Ranks that may wait in another library, or on the
  // host, are told through the world, which ends it. What can be refused is refused in prepare().
  // An error of all ranks (OnAllRanks) is a refusal, too: the next operation is right.
  template <class Work>
  void operation(cudaStream_t stream, StepKind kind, const Work& work) {
    const bool recorded = is_recorded(stream);
    begin(recorded);
    signals_->set_kind(kind);
    try {
      work();
    } catch (const OfAllRanks&) {
      if (recorded) spoil_recording(stream);
      throw;
    } catch (...) {
      recorded ? spoil_recording(stream) : abandon();
      throw;
    }
    was_recorded_ = was_recorded_ || recorded;
  }
  // From here on, operations may wait for other ranks where the GPU's marks end no wait: in another
  // library, or on the host.
  void set_waits_elsewhere() { waits_elsewhere_ = true; }
  // Tells whether an operation was recorded in a CUDA graph: replays use the slots where they are.
  bool was_recorded() const { return was_recorded_; }
  // Announces that recorded steps are about to be replayed on the stream, or after what it has been
  // given. Throws as operation() does.
  void replayed(std::uint32_t steps, cudaStream_t stream);
  // If an exception is destroying the owner of this link, ends all waits on this GPU, so that the
  // host can wait for the GPU.
  void abandon_if_unwinding();

  // Collective. Makes room for slots of `bytes` on every rank; the largest request counts. Waits
  // for the GPU if the room moves. Throws DoesNotFitError on all ranks; as Exchange::reserve(),
  // there may then be no room (lost()).
  void reserve(std::uint64_t bytes);
  bool lost() const { return !heap_; }

  // Collective. Enqueues the sum of an array over ranks, the same bits on all, without the host. T:
  // float or double. To be called within operation().
  template <class T>
  void all_reduce_sum(T* values, std::uint64_t count, cudaStream_t stream);

  // The rank and the number of ranks, the type of rows on the wire, the beginning of a rank's slots
  // (valid until the next reserve()), and the stream for data that cross the link.
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  DType wire() const { return wire_; }
  std::byte* slots(int rank) const { return heap_->part(rank); }
  DeviceSignals& signals() { return *signals_; }
  const DeviceSignals& signals() const { return *signals_; }
  cudaStream_t stream() const { return stream_->get(); }
  // Returns a stream that follows all work that stream() has been given so far, so that a signal
  // does not stand between two copies.
  cudaStream_t after_copies() {
    follow(signal_stream_->get(), stream());
    signals_follow_ = true;
    return signal_stream_->get();
  }
  // Returns a signal from each other rank.
  std::vector<Signal> others(int number) const;
  // Lets the stream wait until all ranks have come to this operation, and compares its kind. It
  // comes before work of another library, which would pair by order alone.
  void meet(cudaStream_t stream);
  // Notes the time from here to the end of the scope in the trace, if one is taken.
  DeviceTrace::Span span(const char* name, std::size_t number, const char* lane,
                         cudaStream_t stream) {
    fault_point();
    return {trace_, name, number, lane, stream};
  }
  void set_trace(DeviceTrace* trace) { trace_ = trace; }  // null: none

  // follow(): later work on the link's stream waits for all that `stream` has been given so far.
  // let_follow(): later work on `stream` waits for the link's streams. The host does not wait.
  void follow(cudaStream_t stream) { follow(this->stream(), stream); }
  void let_follow(cudaStream_t stream) {
    follow(stream, this->stream());
    // A stream that was given nothing must not be followed by one that is recorded.
    if (std::exchange(signals_follow_, false)) follow(stream, signal_stream_->get());
  }

 private:
  void begin(bool recorded);
  void abandon();
  static constexpr std::size_t kReduceBytes = 1 << 20;  // of each rank, summed at once

  void follow(cudaStream_t later, cudaStream_t earlier);

  World& world_;
  int rank_, ranks_;
  std::uint64_t place_;
  DType wire_;
  Transports transports_;
  std::unique_ptr<DeviceHeap> flags_;  // and room for sums over ranks
  std::unique_ptr<DeviceSignals> signals_;
  std::unique_ptr<DeviceHeap> heap_;
  std::unique_ptr<GpuStream> stream_, signal_stream_;
  bool signals_follow_ = false;  // since the last let_follow()
  bool was_recorded_ = false, waits_elsewhere_ = false;
  const int exceptions_ = std::uncaught_exceptions();
  std::unique_ptr<DeviceEvent> event_;
  DeviceTrace* trace_ = nullptr;
};

// Returns the kind of a sum over ranks of `count` numbers of type T.
template <class T>
StepKind kind_of_all_reduce(std::uint64_t count) {
  return step_kind({static_cast<std::uint64_t>(LinkOperation::all_reduce), sizeof(T), count});
}

}  // namespace plait
