// The sum of small arrays over ranks: each rank writes its values to all others at once, and each
// adds them up in the order of ranks, so that all get the same bits. Bytes per GPU: (ranks - 1)
// times the array each way. Gradients of a model's weights are small beside the halo; for them one
// crossing counts for more than bytes, and a ring takes many.
#include <algorithm>

#include "plait/exchange/cuda/all_reduce.h"
#include "plait/exchange/cuda/graph.cuh"
#include "plait/symmetric/peer_access.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr int kMostRanks = 32;
constexpr int kArrived = 0;  // signal

// The addresses where the values of each rank stand, or go.
template <class T>
struct Places {
  T* at[kMostRanks];
};

template <class T>
__global__ void push_values(const T* values, std::uint64_t count, int rank,
                            const __grid_constant__ Places<T> places) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const int peer = static_cast<int>(blockIdx.y);
  if (i < count && peer != rank) places.at[peer][i] = values[i];
}

template <class T>
__global__ void add_values(T* values, std::uint64_t count, int rank, int ranks,
                           const __grid_constant__ Places<T> places) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (i >= count) return;
  T sum = 0;
  for (int r = 0; r < ranks; ++r) sum += r == rank ? values[i] : places.at[r][i];
  values[i] = sum;
}

}  // namespace

template <class T>
void DeviceLink::all_reduce_sum(T* values, std::uint64_t count, cudaStream_t stream) {
  if (ranks_ == 1) return;
  const std::vector<Signal> arrived = others(kArrived), done = others(DeviceSignals::kDone);
  const auto place = [&](int at, int from) {
    return reinterpret_cast<T*>(flags_->part(at) + DeviceSignals::bytes(ranks_) +
                                static_cast<std::size_t>(from) * kReduceBytes);
  };
  Places<T> outgoing{}, incoming{};
  for (int r = 0; r < ranks_; ++r)
    outgoing.at[r] = place(r, rank_), incoming.at[r] = place(rank_, r);
  constexpr std::uint64_t kAtOnce = kReduceBytes / sizeof(T);
  for (std::uint64_t first = 0; first < count; first += kAtOnce) {
    const std::uint64_t size = std::min<std::uint64_t>(kAtOnce, count - first);
    const auto blocks = static_cast<unsigned>((size + kThreads - 1) / kThreads);
    T* const some = values + first;
    signals_->wait(done, stream, 1);  // the last values here have been added
    push_values<<<dim3(blocks, static_cast<unsigned>(ranks_)), kThreads, 0, stream>>>(
        some, size, rank_, outgoing);
    signals_->raise_everywhere(kArrived, stream);
    signals_->wait(arrived, stream);
    add_values<<<blocks, kThreads, 0, stream>>>(some, size, rank_, ranks_, incoming);
    const Results results = std::as_writable_bytes(std::span(some, size));
    signals_->end_step({results}, stream);
  }
  check_cuda(cudaGetLastError(), "summing over ranks");
}

template void DeviceLink::all_reduce_sum(float*, std::uint64_t, cudaStream_t);
template void DeviceLink::all_reduce_sum(double*, std::uint64_t, cudaStream_t);

namespace {

class AllReduce : public GpuAllReduce {
 public:
  AllReduce(World& world, cudaStream_t stream, DeviceTransport transport)
      : stream_(stream), link_(world, DType::f32, {transport, DeviceTransport::own}) {}
  void sum(float* values, std::uint64_t count) override { run(values, count); }
  void sum(double* values, std::uint64_t count) override { run(values, count); }

 private:
  template <class T>
  void run(T* values, std::uint64_t count) {
    const Phase phase("summing over ranks", "sum over ranks");
    link_.operation(stream_, kind_of_all_reduce<T>(count),
                    [&] { link_.all_reduce_sum(values, count, stream_); });
  }
  const cudaStream_t stream_;
  DeviceLink link_;
};

}  // namespace

std::unique_ptr<GpuAllReduce> make_gpu_all_reduce(World& world, void* stream) {
  const bool peers = unreached_peer(world).empty();
  return std::make_unique<AllReduce>(world, static_cast<cudaStream_t>(stream),
                                     peers ? DeviceTransport::vmm : DeviceTransport::host);
}

}  // namespace plait
