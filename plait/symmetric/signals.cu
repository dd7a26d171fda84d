#include <algorithm>

#include "plait/base/error.h"
#include "plait/symmetric/signal_device.cuh"

namespace plait {
namespace {

constexpr int kLanes = 32;  // flags of one kernel: a lane each
constexpr int kPushThreads = 512;
constexpr unsigned kPushBlocks = 48;  // fill most of a link, and leave most of the GPU to others
constexpr int kInFlight = 4;          // loads a thread

struct Flags {
  std::uint32_t* at[kLanes];
  int rank[kLanes];
  int count;
};

__global__ void raise_kernel(SignalState* state, const __grid_constant__ Flags flags,
                             bool ends_step) {
  const std::uint32_t step = state->step;
  __syncwarp();
  if (threadIdx.x < flags.count) {
    __threadfence_system();
    SystemFlag(*flags.at[threadIdx.x]).store(step, cuda::memory_order_release);
  }
  if (threadIdx.x == 0 && ends_step) state->step = step + 1;
}

__global__ void wait_kernel(SignalState* state, const __grid_constant__ Flags flags,
                            std::uint32_t back, unsigned long long limit) {
  const unsigned long long begin = nanoseconds();
  const int lane = threadIdx.x;
  if (lane < flags.count)
    await_flag(flags.at[lane], state->step - back, flags.rank[lane], state, limit);
  __syncwarp();
  if (lane == 0 && back == 0) state->waited += nanoseconds() - begin;
}

// In pieces that a thread moves at once.
template <class Piece>
struct Pushes {
  const Piece* from[kLanes];
  Piece* to[kLanes];
  std::uint64_t pieces[kLanes];
  std::uint32_t* flag[kLanes];
  int count;
};

// All blocks work on one push after the other; the last to end one raises its signal.
// `ended`: blocks that have ended each push; zero before and after.
template <class Piece>
__global__ void __launch_bounds__(kPushThreads)
    push_kernel(SignalState* state, const __grid_constant__ Flags before,
                const __grid_constant__ Pushes<Piece> pushes, unsigned* ended,
                unsigned long long limit) {
  const std::uint32_t step = state->step;
  if (threadIdx.x < before.count)
    await_flag(before.at[threadIdx.x], step - 1, before.rank[threadIdx.x], state, limit);
  __syncthreads();
  const std::uint64_t all = std::uint64_t{gridDim.x} * kPushThreads;
  for (int p = 0; p < pushes.count; ++p) {
    const Piece* const from = pushes.from[p];
    Piece* const to = pushes.to[p];
    const std::uint64_t size = pushes.pieces[p];
    for (std::uint64_t first = blockIdx.x * std::uint64_t{kPushThreads} + threadIdx.x; first < size;
         first += all * kInFlight) {
      Piece value[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * all < size) value[k] = __ldcs(from + first + k * all);
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * all < size) to[first + k * all] = value[k];
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(ended + p, 1u) == gridDim.x - 1) {
      ended[p] = 0;
      __threadfence_system();
      SystemFlag(*pushes.flag[p]).store(step, cuda::memory_order_release);
    }
  }
}

}  // namespace

DeviceSignals::DeviceSignals(DeviceHeap& heap, int rank, int ranks, std::chrono::nanoseconds limit)
    : heap_(heap),
      rank_(rank),
      ranks_(ranks),
      limit_(static_cast<std::uint64_t>(limit.count())),
      state_(std::vector{SignalState{.step = 1, .failed = 0, .waited = 0}}),
      ended_(std::vector<unsigned>(kLanes, 0)) {
  require(ranks <= kLanes, "{} ranks on one host are more than the {} that signals reach", ranks,
          kLanes);
}

std::uint32_t* DeviceSignals::flag(int at, int from, int number) const {
  return reinterpret_cast<std::uint32_t*>(heap_.part(at)) + from * kSignals + number;
}

void DeviceSignals::raise(int peer, int number, cudaStream_t stream) {
  Flags flags{};
  flags.at[0] = flag(peer, rank_, number);
  flags.count = 1;
  raise_kernel<<<1, kLanes, 0, stream>>>(state_.data(), flags, false);
  check_cuda(cudaGetLastError(), "raising a signal");
}

void DeviceSignals::raise_everywhere(int number, cudaStream_t stream) {
  Flags flags{};
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) flags.at[flags.count++] = flag(peer, rank_, number);
  raise_kernel<<<1, kLanes, 0, stream>>>(state_.data(), flags, number == kDone);
  check_cuda(cudaGetLastError(), "raising signals");
}

void DeviceSignals::wait(std::span<const Signal> signals, cudaStream_t stream, std::uint32_t back) {
  for (std::size_t first = 0; first < signals.size(); first += kLanes) {
    Flags flags{};
    const std::size_t count = std::min<std::size_t>(kLanes, signals.size() - first);
    for (const Signal& s : signals.subspan(first, count)) {
      flags.at[flags.count] = flag(rank_, s.rank, s.number);
      flags.rank[flags.count++] = s.rank;
    }
    wait_kernel<<<1, kLanes, 0, stream>>>(state_.data(), flags, back, limit_);
    check_cuda(cudaGetLastError(), "waiting for a signal");
  }
}

void DeviceSignals::push(std::span<const Push> pushes, cudaStream_t stream) {
  for (; pushes.size() > kLanes; pushes = pushes.subspan(kLanes))
    push_some(pushes.first(kLanes), stream);
  if (!pushes.empty()) push_some(pushes, stream);
}

void DeviceSignals::push_some(std::span<const Push> pushes, cudaStream_t stream) {
  const bool wide = std::ranges::all_of(pushes, [](const Push& p) {
    const auto starts =
        reinterpret_cast<std::uintptr_t>(p.from) | reinterpret_cast<std::uintptr_t>(p.to);
    return (starts | p.bytes) % sizeof(uint4) == 0;
  });
  wide ? push_pieces<uint4>(pushes, stream) : push_pieces<float>(pushes, stream);
}

template <class Piece>
void DeviceSignals::push_pieces(std::span<const Push> pushes, cudaStream_t stream) {
  Pushes<Piece> list{};
  for (const Push& p : pushes) {
    list.from[list.count] = static_cast<const Piece*>(p.from);
    list.to[list.count] = static_cast<Piece*>(p.to);
    list.pieces[list.count] = p.bytes / sizeof(Piece);
    list.flag[list.count++] = flag(p.peer, rank_, p.number);
  }
  Flags before{};
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    before.at[before.count] = flag(rank_, peer, kDone);
    before.rank[before.count++] = peer;
  }
  push_kernel<Piece><<<kPushBlocks, kPushThreads, 0, stream>>>(state_.data(), before, list,
                                                               ended_.data(), limit_);
  check_cuda(cudaGetLastError(), "pushing rows");
}

double DeviceSignals::waited() const {
  const SignalState state = state_.to_host()[0];
  require(state.failed == 0,
          "rank {}: rank {} has not raised a signal within {:g} s; its GPU hangs, or it is far "
          "behind",
          rank_, state.failed - 1, static_cast<double>(limit_) / 1e9);
  return static_cast<double>(state.waited) / 1e9;
}

}  // namespace plait
