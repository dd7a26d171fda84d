#include <algorithm>
#include <cuda/atomic>

#include "plait/base/error.h"
#include "plait/symmetric/signals_cuda.h"

namespace plait {

namespace {

constexpr int kMost = 32;  // flags of one kernel: a lane each

struct Flags {
  std::uint32_t* at[kMost];
  int rank[kMost];
  int count;
};

__global__ void next_step_kernel(SignalState* state) { ++state->step; }

__global__ void raise_kernel(const SignalState* state, const __grid_constant__ Flags flags) {
  if (threadIdx.x >= flags.count) return;
  __threadfence_system();
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> flag(*flags.at[threadIdx.x]);
  flag.store(state->step, cuda::memory_order_release);
}

__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void wait_kernel(SignalState* state, const __grid_constant__ Flags flags,
                            std::uint32_t back, unsigned long long limit) {
  const unsigned long long begin = now();
  if (threadIdx.x < flags.count) {
    const std::uint32_t wanted = state->step - back;
    cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> flag(*flags.at[threadIdx.x]);
    const volatile std::int32_t& failed = state->failed;
    // Steps may pass 2^32: their difference counts.
    while (static_cast<std::int32_t>(flag.load(cuda::memory_order_acquire) - wanted) < 0 &&
           failed == 0) {
      if (now() - begin > limit) atomicCAS(&state->failed, 0, 1 + flags.rank[threadIdx.x]);
      __nanosleep(50);
    }
  }
  __syncwarp();
  if (threadIdx.x == 0 && back == 0) state->waited += now() - begin;
}

}  // namespace

DeviceSignals::DeviceSignals(DeviceHeap& heap, int rank, int ranks, std::chrono::nanoseconds limit)
    : heap_(heap),
      rank_(rank),
      ranks_(ranks),
      limit_(static_cast<std::uint64_t>(limit.count())),
      state_(1) {
  require(ranks <= kMost, "{} ranks on one host are more than the {} that signals reach", ranks,
          kMost);
  check_cuda(cudaMemset(state_.data(), 0, sizeof(SignalState)), "signals");
}

std::uint32_t* DeviceSignals::flag(int at, int from, int number) const {
  return reinterpret_cast<std::uint32_t*>(heap_.part(at)) + from * kSignals + number;
}

void DeviceSignals::next_step(cudaStream_t stream) {
  next_step_kernel<<<1, 1, 0, stream>>>(state_.data());
}

void DeviceSignals::raise(int peer, int number, cudaStream_t stream) {
  Flags flags{};
  flags.at[0] = flag(peer, rank_, number);
  flags.count = 1;
  raise_kernel<<<1, 1, 0, stream>>>(state_.data(), flags);
  check_cuda(cudaGetLastError(), "raising a signal");
}

void DeviceSignals::raise_everywhere(int number, cudaStream_t stream) {
  Flags flags{};
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) flags.at[flags.count++] = flag(peer, rank_, number);
  raise_kernel<<<1, kMost, 0, stream>>>(state_.data(), flags);
  check_cuda(cudaGetLastError(), "raising signals");
}

void DeviceSignals::wait(std::span<const Signal> signals, cudaStream_t stream, std::uint32_t back) {
  for (std::size_t first = 0; first < signals.size(); first += kMost) {
    Flags flags{};
    for (const Signal& s :
         signals.subspan(first, std::min<std::size_t>(kMost, signals.size() - first))) {
      flags.at[flags.count] = flag(rank_, s.rank, s.number);
      flags.rank[flags.count++] = s.rank;
    }
    wait_kernel<<<1, kMost, 0, stream>>>(state_.data(), flags, back, limit_);
    check_cuda(cudaGetLastError(), "waiting for a signal");
  }
}

double DeviceSignals::waited() const {
  SignalState state{};
  check_cuda(cudaMemcpy(&state, state_.data(), sizeof(SignalState), cudaMemcpyDeviceToHost),
             "work on the GPU");
  require(
      state.failed == 0,
      "rank {}: rank {} has not raised a signal within {:g} s; its GPU hangs, or it is far behind",
      rank_, state.failed - 1, static_cast<double>(limit_) / 1e9);
  return static_cast<double>(state.waited) / 1e9;
}

}  // namespace plait
