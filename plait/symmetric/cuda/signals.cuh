// Signals let streams of different GPUs wait for each other without the host.
//
// Each rank keeps a flag for each signal that another rank may raise, in its own memory, so that it
// waits there and only the raising crosses the link. A flag holds the number of the last step in
// which it was raised; steps count up from 1 and are counted on the GPU, so that recorded work can
// be replayed (CUDA graphs).
//
// Beside the number, a flag holds the kind of the step: the operation, its direction and its width.
// A rank may leave a training step by an error outside of any operation, of libtorch's memory say,
// and go on with the next batch: its forward would then pair with another rank's backward by the
// number alone. A wait for a flag of the same step but of another kind fails as that of a lost rank
// does. A rank in another kind of step may never raise the flag: so a wait that lasts tells the
// others of its step, and fails if one of them waits in, or has ended, that step as one of another
// kind. As on the CPU, which compares words at its barriers, two steps of the same kind are not
// told apart; they are until the first whose kinds differ.
//
// Memory ordering: a signal is raised by a release store at system scope, after all that the stream
// did before (its kernels' and copies' writes to any GPU). A wait is an acquire load at system
// scope, and later work on the stream sees those writes.
//
// A wait lasts as long as the ranks are alive, however slow or paused their hosts are. It fails
// only when World ends it (watched_work.h): through a word in the host's memory that a waiting
// kernel reads. A failed wait spreads before rows can be overwritten that others still read: the
// GPU that gives up first stores a mark in the memory of all others, whose waits then fail too.
// From then on no signal is raised, each step sets all bits of its results, and check() throws.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "plait/base/limits.h"
#include "plait/symmetric/cuda/heap.cuh"

namespace plait {

// The reason why waits have failed: 0 if they have not, 1 if a rank is lost or has left, 2 + r if
// rank r has abandoned an operation; kDifferentSteps if ranks were in steps of different kinds.
using Mark = std::uint32_t;
inline constexpr Mark kDifferentSteps = ~Mark{0};

// A step's kind. kAnyStep stands for steps that are not compared.
using StepKind = std::uint32_t;
inline constexpr StepKind kAnyStep = 0;
// Returns the kind of steps that differ from others in these numbers.
StepKind step_kind(std::initializer_list<std::uint64_t> numbers);

// Words in the host's memory, read and written by the GPU as well. Each has one writer.
struct SignalWords {
  std::uint64_t done;     // by the GPU: the last step that has ended; above 2^32, the recorded ones
  Mark ended;             // by the host: waits fail with it from then on
  Mark failed;            // by the GPU: of a failed wait
  std::uint32_t marks;    // by the GPU: marks that it has come to
  std::uint32_t waiting;  // by the GPU: changes again and again while a wait lasts
  std::uint32_t elsewhere;  // by the GPU: the step in which another library may wait, or 0
  // By the GPU: announcements of replays that it has come to; above 2^32, the recorded steps that
  // will have ended after these replays.
  std::uint64_t announced;
};

// State in the GPU's memory; device code is in cuda/flags.cuh.
struct SignalState;

// Bytes for a peer, and the signal that they have arrived; or bytes for the rank itself, without a
// signal. Pointers and sizes are multiples of 4 bytes; pushes are faster if they are multiples
// of 16.
struct Push {
  int peer;
  const void* from;  // on this GPU
  void* to;          // on the peer's GPU
  std::uint64_t bytes;
  int number = 0;  // the signal
  // The numbers of the rows of `from` to push, of row_bytes each; null: the first `bytes` bytes.
  const std::uint32_t* rows = nullptr;
  std::uint64_t row_bytes = 0;
};

// A signal that `rank` raises to this rank.
struct Signal {
  int rank;
  int number;  // below DeviceSignals::kSignals
};

// An array that a step has written, of any plain type, on this GPU. If a wait has failed, all its
// bits are set: as floats of any size that is NaN, as integers -1 or the greatest.
using Results = std::span<std::byte>;

// The signals of one rank. Its functions enqueue work and do not wait, unless said otherwise; one
// thread of the process calls them.
class DeviceSignals final : private WatchedWork {
 public:
  static constexpr int kSignals = 64;  // from each rank, the last one taken
  // Ends every step: the rank does not read its slots any more, and the next step may write there.
  static constexpr int kDone = kSignals - 1;

  // Flags stand at the beginning of every part of the heap, which must be zeroed. The heap and the
  // world outlive this object. Throws Error above kMostGpus ranks.
  DeviceSignals(DeviceHeap& heap, World& world);
  ~DeviceSignals();
  DeviceSignals(const DeviceSignals&) = delete;
  DeviceSignals& operator=(const DeviceSignals&) = delete;

  // Returns the bytes of all flags of a part: one row of flags per rank, the mark of a failed wait,
  // and one word per rank for its waits. They are a multiple of 16.
  static std::size_t bytes(int ranks) {
    return (static_cast<std::size_t>(ranks) * kSignals + 2 + kMostGpus) * sizeof(std::uint64_t);
  }

  // Sets the kind of the steps that are enqueued from here on. It is the same on all ranks.
  void set_kind(StepKind kind) { kind_ = kind; }
  StepKind kind() const { return kind_; }

  // Raises signal `number` at `peer`, or at all other ranks, for this step.
  void raise(int peer, int number, cudaStream_t stream);
  void raise_everywhere(int number, cudaStream_t stream);
  // Raises kDone everywhere, which ends the step: no work on any other stream may still belong to
  // it. If a wait has failed, all bits of `results` are set instead; there are at most
  // kMostResults.
  void end_step(const std::vector<Results>& results, cudaStream_t stream);
  static constexpr std::size_t kMostResults = 4;
  // Lets the stream wait until all these signals have been raised in this step or later; or in the
  // step `back` steps before.
  void wait(std::span<const Signal> signals, cudaStream_t stream, std::uint32_t back = 0);
  // Tells the watch over ranks that work of another library begins or ends, which may wait for
  // other ranks unseen.
  void wait_elsewhere(bool begins, cudaStream_t stream);

  // Must be called before the host waits for the stream: the watch then knows that the GPU has
  // work.
  void mark(cudaStream_t stream);
  // Tells that an operation has failed on this rank after it had begun: results that the others
  // make of rows which it has not sent become NaN, and check() throws on all. Returns false if this
  // GPU could not be told to tell the others.
  bool abandon(cudaStream_t stream);

  // Lets the stream wait until all others have done the step before, write to them in the order
  // given, and raise the signals; and then wait for `arrivals`, as wait() does: one kernel of
  // `blocks` blocks for each 32 of them. For small rows, where copies and signals would take longer
  // to begin than to run.
  void push(std::span<const Push> pushes, std::span<const Signal> arrivals, unsigned blocks,
            cudaStream_t stream);

  // recorded() counts the steps that were recorded so far; replayed() is to be told of steps that
  // will be replayed, on this stream or after what it has been given, because the watch over ranks
  // cannot see else what the GPU was given to do.
  std::uint32_t recorded() const { return recorded_; }
  void replayed(std::uint32_t steps, cudaStream_t stream);

  // Throws LostRankError if a rank is lost or a wait has failed in the work that the GPU has done
  // so far, Error after abandon() on this rank or on another.
  void check() const;
  // Returns the seconds that streams have stood in waits for the step under way, summed over all
  // steps. Waits for the GPU.
  double waited() const;
  // Lets waits fail from here on. May be called again and again, by any thread.
  void end_waits() override;

 private:
  Progress progress() override;
  void end_waits(Mark mark);
  template <class Piece>
  void push_pieces(std::span<const Push> pushes, std::span<const Signal> arrivals, unsigned blocks,
                   cudaStream_t stream);
  std::uint64_t* flag(int at, int from, int number) const;
  Mark* failed_mark(int at) const { return reinterpret_cast<Mark*>(flag(at, ranks_, 0)); }
  std::uint64_t* waits_of(int at, int rank) const { return flag(at, ranks_, 2 + rank); }

  struct FreeHostMemory {
    void operator()(SignalWords* words) const;
  };

  DeviceHeap& heap_;
  World& world_;
  int rank_, ranks_;
  std::unique_ptr<SignalWords, FreeHostMemory> words_;
  DeviceArray<SignalState> state_;
  DeviceArray<unsigned> ended_;
  std::atomic<std::uint32_t> enqueued_{0};   // steps, without recorded ones
  std::atomic<std::uint32_t> announced_{0};  // announcements of replays
  std::atomic<std::uint32_t> marked_{0};
  std::uint32_t recorded_ = 0;
  StepKind kind_ = kAnyStep;
  bool abandoned_ = false;
};

}  // namespace plait
