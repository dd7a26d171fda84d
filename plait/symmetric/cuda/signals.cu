#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "plait/base/delay.h"
#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/symmetric/cuda/flags.cuh"
#include "plait/symmetric/step_counts.h"

namespace plait {
namespace {

constexpr int kLanes = 32;  // flags of one kernel: one for each lane
static_assert(kLanes >= kMostGpus);
constexpr int kPushThreads = 512;
constexpr int kInFlight = 4;  // loads per thread

struct Flags {
  std::uint64_t* at[kLanes];
  int count;
};

__device__ void raise_flags(const SignalState* state, const Flags& flags, StepKind kind) {
  if (threadIdx.x >= flags.count) return;
  __threadfence_system();
  SystemFlag(*flags.at[threadIdx.x])
      .store(flag_word(state->step, kind), cuda::memory_order_release);
}

__global__ void raise_kernel(const SignalState* state, const __grid_constant__ Flags flags,
                             StepKind kind) {
  if (!has_failed(state)) raise_flags(state, flags, kind);
}

struct StepResults {
  std::byte* data[DeviceSignals::kMostResults];
  std::uint64_t size[DeviceSignals::kMostResults];
};

// By the lanes of one warp.
__device__ void set_all_bits(std::byte* data, std::uint64_t size) {
  if (reinterpret_cast<std::uintptr_t>(data) % sizeof(std::uint32_t) == 0) {
    auto* const words = reinterpret_cast<std::uint32_t*>(data);
    for (std::uint64_t i = threadIdx.x; i < size / sizeof *words; i += kLanes)
      words[i] = 0xffffffffu;
    data += size / sizeof *words * sizeof *words;
    size %= sizeof *words;
  }
  for (std::uint64_t i = threadIdx.x; i < size; i += kLanes) data[i] = std::byte{0xff};
}

__global__ void end_step_kernel(SignalState* state, const __grid_constant__ Flags done,
                                const __grid_constant__ StepResults results, StepKind kind,
                                bool recorded) {
  const Mark failed = failed_mark(state);
  if (failed == 0) {
    raise_flags(state, done, kind);
  } else {
    tell_host(state->words->failed, failed);  // another rank may have set the mark
    for (std::size_t r = 0; r < DeviceSignals::kMostResults; ++r)
      set_all_bits(results.data[r], results.size[r]);
  }
  __threadfence_system();
  __syncwarp();
  if (threadIdx.x != 0) return;
  if (recorded) ++state->replays;
  tell_host(state->words->done, std::uint64_t{state->replays} << 32 | state->step++);
}

__global__ void delay_kernel(unsigned long long ns) {
  const unsigned long long end = nanoseconds() + ns;
  while (nanoseconds() < end) __nanosleep(1000);
}

// For tests (delay.h, fault.h): comes before and after parts of a step.
void test_point(cudaStream_t stream) {
  fault_point();
  const auto delay = next_delay();
  if (delay.count() == 0) return;
  delay_kernel<<<1, 1, 0, stream>>>(
      static_cast<unsigned long long>(std::chrono::nanoseconds(delay).count()));
  check_cuda(cudaGetLastError(), "a delay");
}

__global__ void mark_kernel(SignalState* state) { tell_host(state->words->marks, ++state->marks); }

// Counts where the stream comes to it, after the replays that were enqueued before.
__global__ void announce_kernel(SignalState* state, std::uint32_t steps) {
  state->replays_given = replays_after(state->replays_given, state->replays, steps);
  tell_host(state->words->announced,
            std::uint64_t{state->replays_given} << 32 | ++state->announcements);
}

__global__ void fail_kernel(SignalState* state, Mark mark) { fail(state, mark); }

__global__ void elsewhere_kernel(const SignalState* state, bool begins) {
  tell_host(state->words->elsewhere, begins ? state->step : 0u);
}

// Each lane of the warp that calls this waits for one flag, until it holds the step `back` steps
// before this one.
__device__ void await_flags(SignalState* state, const Flags& flags, StepKind kind,
                            std::uint32_t back) {
  const unsigned long long begin = nanoseconds();
  const int lane = threadIdx.x;
  if (lane < flags.count) await_flag(flags.at[lane], state->step - back, kind, state);
  __syncwarp();
  if (lane == 0 && back == 0) state->waited += nanoseconds() - begin;
}

__global__ void wait_kernel(SignalState* state, const __grid_constant__ Flags flags, StepKind kind,
                            std::uint32_t back) {
  await_flags(state, flags, kind, back);
}

// Pushes, in pieces that a thread moves at once.
template <class Piece>
struct Pushes {
  const Piece* from[kLanes];
  Piece* to[kLanes];
  std::uint64_t pieces[kLanes];
  const std::uint32_t* rows[kLanes];  // null: all pieces of `from`, in order
  std::uint32_t row_pieces[kLanes];
  std::uint64_t* flag[kLanes];  // null: none
  int count;
};

// Copies to[i] = from[source(i)], with several loads of each thread on their way.
template <class Piece, class Source>
__device__ void copy_pieces(const Piece* from, Piece* to, std::uint64_t size,
                            const Source& source) {
  const std::uint64_t all = std::uint64_t{gridDim.x} * kPushThreads;
  for (std::uint64_t first = blockIdx.x * std::uint64_t{kPushThreads} + threadIdx.x; first < size;
       first += all * kInFlight) {
    Piece value[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k * all < size) value[k] = __ldcs(from + source(first + k * all));
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k * all < size) to[first + k * all] = value[k];
  }
}

// All blocks work on one push after the other; the last to end one raises its signal. Then the
// first block waits for the arrivals, when all that others wait for is under way. A block whose
// wait has failed pushes nothing; then the signal is not raised, or no reader makes a number of it.
// `ended`: blocks that have ended each push; zero before and after.
template <class Piece>
__global__ void __launch_bounds__(kPushThreads)
    push_kernel(SignalState* state, const __grid_constant__ Flags before,
                const __grid_constant__ Pushes<Piece> pushes,
                const __grid_constant__ Flags arrivals, StepKind kind, unsigned* ended) {
  const std::uint32_t step = state->step;
  const bool waits = threadIdx.x < before.count;
  if (__syncthreads_or(waits && !await_flag(before.at[threadIdx.x], step - 1, kAnyStep, state)))
    return;
  for (int p = 0; p < pushes.count; ++p) {
    const std::uint32_t* const rows = pushes.rows[p];
    const std::uint32_t row_pieces = pushes.row_pieces[p];
    if (rows == nullptr)
      copy_pieces(pushes.from[p], pushes.to[p], pushes.pieces[p],
                  [](std::uint64_t piece) { return piece; });
    else
      copy_pieces(pushes.from[p], pushes.to[p], pushes.pieces[p], [&](std::uint64_t piece) {
        const auto at = static_cast<std::uint32_t>(piece);  // 64-bit division takes long
        return std::uint64_t{rows[at / row_pieces]} * row_pieces + at % row_pieces;
      });
    if (pushes.flag[p] == nullptr) continue;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(ended + p, 1u) == gridDim.x - 1) {
      ended[p] = 0;
      __threadfence_system();
      SystemFlag(*pushes.flag[p]).store(flag_word(step, kind), cuda::memory_order_release);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x < kLanes && arrivals.count > 0)
    await_flags(state, arrivals, kind, 0);
}

}  // namespace

namespace {

constexpr Mark kLost = 1, kAbandonedBy = 2;
constexpr const char* kWords = "memory of the host that the GPU reads";

// The memory is the process's own, because CUDA may end before the watch over ranks does.
SignalWords* host_words() {
  void* const page = ::mmap(nullptr, sizeof(SignalWords), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(page != MAP_FAILED, "{}: {}", kWords, std::strerror(errno));
  const auto status = cudaHostRegister(page, sizeof(SignalWords),
                                       cudaHostRegisterMapped | cudaHostRegisterPortable);
  if (status != cudaSuccess) ::munmap(page, sizeof(SignalWords));
  check_pinned(status, sizeof(SignalWords), kWords);
  return new (page) SignalWords{};
}

SignalWords* on_gpu(SignalWords* words) {
  void* address = nullptr;
  check_cuda(cudaHostGetDevicePointer(&address, words, 0), kWords);
  return static_cast<SignalWords*>(address);
}

template <class Word>
Word read(Word& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

}  // namespace

void DeviceSignals::FreeHostMemory::operator()(SignalWords* words) const {
  if (cudaHostUnregister(words) == cudaSuccess) ::munmap(words, sizeof *words);
}

StepKind step_kind(std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const std::uint64_t number : numbers) {
    hash = (hash ^ number) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  const auto kind = static_cast<StepKind>(hash);
  return kind == kAnyStep ? 1 : kind;
}

DeviceSignals::DeviceSignals(DeviceHeap& heap, World& world)
    : heap_(heap),
      world_(world),
      rank_(world.rank()),
      ranks_(world.size()),
      words_(host_words()),
      ended_(std::vector<unsigned>(kLanes, 0)) {
  require(ranks_ <= kMostGpus, "{} ranks on one host are more than the {} that signals reach",
          ranks_, kMostGpus);
  SignalState state{.step = 1,
                    .rank = rank_,
                    .ranks = ranks_,
                    .marks = 0,
                    .replays = 0,
                    .announcements = 0,
                    .replays_given = 0,
                    .waited = 0,
                    .words = on_gpu(words_.get()),
                    .failed_at = {},
                    .waits_at = {},
                    .waits_of = {},
                    .done_by = {}};
  for (int rank = 0; rank < ranks_; ++rank) {
    state.failed_at[rank] = failed_mark(rank);
    state.waits_at[rank] = waits_of(rank, rank_);
    state.waits_of[rank] = waits_of(rank_, rank);
    state.done_by[rank] = flag(rank_, rank, kDone);
  }
  state_ = DeviceArray<SignalState>(std::vector{state});
  world.watch(*this);
}

DeviceSignals::~DeviceSignals() { world_.unwatch(*this); }

std::uint64_t* DeviceSignals::flag(int at, int from, int number) const {
  return reinterpret_cast<std::uint64_t*>(heap_.part(at)) + from * kSignals + number;
}

void DeviceSignals::raise(int peer, int number, cudaStream_t stream) {
  test_point(stream);
  Flags flags{};
  flags.at[0] = flag(peer, rank_, number);
  flags.count = 1;
  raise_kernel<<<1, kLanes, 0, stream>>>(state_.data(), flags, kind_);
  check_cuda(cudaGetLastError(), "raising a signal");
}

namespace {

// Returns the flags of at most kLanes signals.
template <class FlagAt>
Flags flags_of(std::span<const Signal> signals, const FlagAt& flag_at) {
  Flags flags{};
  for (const Signal& signal : signals) flags.at[flags.count++] = flag_at(signal);
  return flags;
}

template <class FlagAt>
Flags flags_of_others(int rank, int ranks, const FlagAt& flag_at) {
  Flags flags{};
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != rank) flags.at[flags.count++] = flag_at(peer);
  return flags;
}

}  // namespace

void DeviceSignals::raise_everywhere(int number, cudaStream_t stream) {
  test_point(stream);
  const Flags flags =
      flags_of_others(rank_, ranks_, [&](int peer) { return flag(peer, rank_, number); });
  raise_kernel<<<1, kLanes, 0, stream>>>(state_.data(), flags, kind_);
  check_cuda(cudaGetLastError(), "raising signals");
}

void DeviceSignals::end_step(const std::vector<Results>& results, cudaStream_t stream) {
  const Flags flags =
      flags_of_others(rank_, ranks_, [&](int peer) { return flag(peer, rank_, kDone); });
  StepResults list{};
  std::size_t count = 0;
  for (const Results& r : results) {
    list.data[count] = r.data();
    list.size[count++] = r.size();
  }
  test_point(stream);
  const bool recorded = is_recorded(stream);
  end_step_kernel<<<1, kLanes, 0, stream>>>(state_.data(), flags, list, kind_, recorded);
  check_cuda(cudaGetLastError(), "ending a step");
  if (recorded)
    ++recorded_;
  else
    enqueued_.fetch_add(1, std::memory_order_relaxed);
}

void DeviceSignals::replayed(std::uint32_t steps, cudaStream_t stream) {
  if (!world_.is_watched() || is_recorded(stream)) return;
  announce_kernel<<<1, 1, 0, stream>>>(state_.data(), steps);
  check_cuda(cudaGetLastError(), "an announcement for the watch");
  announced_.fetch_add(1, std::memory_order_relaxed);
}

void DeviceSignals::wait_elsewhere(bool begins, cudaStream_t stream) {
  test_point(stream);
  elsewhere_kernel<<<1, 1, 0, stream>>>(state_.data(), begins);
  check_cuda(cudaGetLastError(), "a mark for the watch");
}

void DeviceSignals::mark(cudaStream_t stream) {
  if (!world_.is_watched() || is_recorded(stream)) return;
  mark_kernel<<<1, 1, 0, stream>>>(state_.data());
  check_cuda(cudaGetLastError(), "a mark for the watch");
  marked_.fetch_add(1, std::memory_order_relaxed);
}

bool DeviceSignals::abandon(cudaStream_t stream) {
  if (ranks_ == 1) return true;
  abandoned_ = true;
  const Mark mark = kAbandonedBy + static_cast<Mark>(rank_);
  end_waits(mark);
  cudaGetLastError();  // the failure that led here is reported instead
  fail_kernel<<<1, 1, 0, stream>>>(state_.data(), mark);
  return cudaGetLastError() == cudaSuccess;
}

void DeviceSignals::wait(std::span<const Signal> signals, cudaStream_t stream, std::uint32_t back) {
  for (; !signals.empty();
       signals = signals.subspan(std::min<std::size_t>(kLanes, signals.size()))) {
    const Flags flags = flags_of(signals.first(std::min<std::size_t>(kLanes, signals.size())),
                                 [&](const Signal& s) { return flag(rank_, s.rank, s.number); });
    wait_kernel<<<1, kLanes, 0, stream>>>(state_.data(), flags, back == 0 ? kind_ : kAnyStep, back);
    check_cuda(cudaGetLastError(), "waiting for a signal");
  }
  test_point(stream);
}

void DeviceSignals::push(std::span<const Push> pushes, std::span<const Signal> arrivals,
                         unsigned blocks, cudaStream_t stream) {
  test_point(stream);
  const bool wide = std::ranges::all_of(pushes, [](const Push& p) {
    const auto starts =
        reinterpret_cast<std::uintptr_t>(p.from) | reinterpret_cast<std::uintptr_t>(p.to);
    return (starts | p.bytes | p.row_bytes) % sizeof(uint4) == 0;
  });
  while (!pushes.empty() || !arrivals.empty()) {
    const auto now = pushes.first(std::min<std::size_t>(pushes.size(), kLanes));
    pushes = pushes.subspan(now.size());
    // Arrivals are waited for when nothing is left to push: others may wait for that.
    const std::size_t most = pushes.empty() ? kLanes : 0;
    const auto awaited = arrivals.first(std::min<std::size_t>(arrivals.size(), most));
    arrivals = arrivals.subspan(awaited.size());
    wide ? push_pieces<uint4>(now, awaited, blocks, stream)
         : push_pieces<float>(now, awaited, blocks, stream);
  }
  test_point(stream);
}

template <class Piece>
void DeviceSignals::push_pieces(std::span<const Push> pushes, std::span<const Signal> arrivals,
                                unsigned blocks, cudaStream_t stream) {
  Pushes<Piece> list{};
  for (const Push& p : pushes) {
    const std::uint64_t pieces = p.bytes / sizeof(Piece);
    require(p.rows == nullptr || pieces >> 32 == 0, "{} bytes of picked rows are too many to push",
            p.bytes);
    list.from[list.count] = static_cast<const Piece*>(p.from);
    list.to[list.count] = static_cast<Piece*>(p.to);
    list.pieces[list.count] = pieces;
    list.rows[list.count] = p.rows;
    list.row_pieces[list.count] = static_cast<std::uint32_t>(p.row_bytes / sizeof(Piece));
    list.flag[list.count++] = p.peer == rank_ ? nullptr : flag(p.peer, rank_, p.number);
  }
  const Flags before =
      flags_of_others(rank_, ranks_, [&](int peer) { return flag(rank_, peer, kDone); });
  const Flags awaited =
      flags_of(arrivals, [&](const Signal& s) { return flag(rank_, s.rank, s.number); });
  push_kernel<Piece><<<blocks, kPushThreads, 0, stream>>>(state_.data(), before, list, awaited,
                                                          kind_, ended_.data());
  check_cuda(cudaGetLastError(), "pushing rows");
}

void DeviceSignals::check() const {
  if (!world_.is_watched()) return;
  world_.check_alive();
  require(!abandoned_,
          "rank {}: an operation between GPUs has failed here before; make the graph anew",
          world_.number_of(rank_));
  const Mark failed = read(words_->failed);
  if (failed == 0) return;
  require(failed != kDifferentSteps,
          "rank {}: ranks were in different operations between GPUs: one may have failed on some "
          "ranks alone; every rank must make the same calls in the same order; make the graph anew",
          world_.number_of(rank_));
  if (failed < kAbandonedBy) world_.explain("another rank has given up a step on its GPU");
  throw Error(fmt::format(
      "rank {}: rank {} has failed in an operation between GPUs; make the graph "
      "anew",
      world_.number_of(rank_), world_.number_of(static_cast<int>(failed - kAbandonedBy))));
}

double DeviceSignals::waited() const {
  return static_cast<double>(state_.to_host()[0].waited) / 1e9;
}

void DeviceSignals::end_waits() { end_waits(kLost); }

void DeviceSignals::end_waits(Mark mark) {
  Mark none = 0;  // the first reason stays
  std::atomic_ref(words_->ended).compare_exchange_strong(none, mark, std::memory_order_release);
}

// The words are read in this order: `done` may only have moved on since the others were.
WatchedWork::Progress DeviceSignals::progress() {
  const std::uint32_t elsewhere = read(words_->elsewhere);
  const std::uint64_t announced = read(words_->announced);
  const std::uint64_t ended = read(words_->done);
  const auto done = static_cast<std::uint32_t>(ended);
  const auto replays = static_cast<std::uint32_t>(ended >> 32);
  const std::uint32_t marks = read(words_->marks);
  const auto announcements = static_cast<std::uint32_t>(announced);
  const bool steps = StepCounts{.direct_given = enqueued_.load(std::memory_order_relaxed),
                                .direct_done = done - replays,
                                .announcements_given = announced_.load(std::memory_order_relaxed),
                                .announcements_done = announcements,
                                .replays_given = static_cast<std::uint32_t>(announced >> 32),
                                .replays_done = replays}
                         .under_way();
  const bool marked = marked_.load(std::memory_order_relaxed) != marks;
  return {.under_way = steps ? elsewhere != done + 1 : marked,
          .moved = std::uint64_t{done + marks + announcements} << 32 | read(words_->waiting)};
}

}  // namespace plait
