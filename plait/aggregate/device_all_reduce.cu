// The sum of small arrays over ranks: each rank writes its values to all others at once, and each
// adds them up in the order of ranks, so that all get the same bits. Bytes a GPU: (ranks - 1) times
// the array each way; for gradients of a model's weights, which are small beside the halo, what
// counts is the one crossing instead of a ring's many.
#include <algorithm>

#include "plait/aggregate/device_graph_cuda.h"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr int kMostRanks = 32;
constexpr int kArrived = 0;  // signal

// By rank: where its values stand, or go.
struct Places {
  float* at[kMostRanks];
};

__global__ void push_values(const float* values, std::uint64_t count, int rank,
                            const __grid_constant__ Places places) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const int peer = static_cast<int>(blockIdx.y);
  if (i < count && peer != rank) places.at[peer][i] = values[i];
}

__global__ void add_values(float* values, std::uint64_t count, int rank, int ranks,
                           const __grid_constant__ Places places) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int r = 0; r < ranks; ++r) sum += r == rank ? values[i] : places.at[r][i];
  values[i] = sum;
}

}  // namespace

void DeviceLink::all_reduce_sum(float* values, std::uint64_t count, cudaStream_t stream) {
  if (ranks_ == 1) return;
  std::vector<Signal> arrived, done;
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    arrived.push_back({r, kArrived});
    done.push_back({r, DeviceSignals::kDone});
  }
  const auto place = [&](int at, int from) {
    return reinterpret_cast<float*>(flags_->part(at) + DeviceSignals::bytes(ranks_)) +
           static_cast<std::size_t>(from) * kReduceFloats;
  };
  Places outgoing{}, incoming{};
  for (int r = 0; r < ranks_; ++r)
    outgoing.at[r] = place(r, rank_), incoming.at[r] = place(rank_, r);
  for (std::uint64_t first = 0; first < count; first += kReduceFloats) {
    const std::uint64_t size = std::min<std::uint64_t>(kReduceFloats, count - first);
    const auto blocks = static_cast<unsigned>((size + kThreads - 1) / kThreads);
    signals_.wait(done, stream, 1);  // what was here before has been added
    push_values<<<dim3(blocks, static_cast<unsigned>(ranks_)), kThreads, 0, stream>>>(
        values + first, size, rank_, outgoing);
    signals_.raise_everywhere(kArrived, stream);
    signals_.wait(arrived, stream);
    add_values<<<blocks, kThreads, 0, stream>>>(values + first, size, rank_, ranks_, incoming);
    signals_.end_step({Results(values + first, size)}, stream);
  }
  check_cuda(cudaGetLastError(), "summing over ranks");
}

}  // namespace plait
