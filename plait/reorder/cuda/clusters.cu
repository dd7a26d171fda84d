// A warp works on one row: each lane holds the label of one neighbour, and lanes with equal labels
// find each other by a match instruction.
#include "plait/base/cuda/warp.cuh"
#include "plait/reorder/clusters_rule.h"
#include "plait/reorder/cuda/clusters.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr std::uint32_t kNoLabel = 0xffffffffu;

__global__ void own_labels(std::uint32_t* labels, std::uint64_t rows) {
  const std::uint64_t row = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (row < rows) labels[row] = static_cast<std::uint32_t>(row);
}

__global__ void vote(const EdgeOffset* begin, const EdgeOffset* end, const Slot* columns,
                     std::uint64_t rows, std::uint32_t round, const std::uint32_t* labels,
                     std::uint32_t* next) {
  const std::uint64_t row = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / 32;
  if (row >= rows) return;
  const std::uint32_t lane = threadIdx.x % 32, own = labels[row];
  const EdgeOffset first = begin[row], degree = end[row] - first;
  std::uint32_t label = kNoLabel;
  if (lane < degree) {
    const auto number = static_cast<std::uint32_t>(row);
    const Slot neighbour = columns[first + cluster_sample(lane, degree, number, round)];
    if (neighbour < rows) label = labels[neighbour];
  }
  const std::uint32_t votes = __popc(__match_any_sync(kAll, label)) + (label == own);
  std::uint64_t weight = label == kNoLabel ? 0 : cluster_weight(votes, label, round);
  for (int distance = 16; distance > 0; distance /= 2) {
    const std::uint64_t other = __shfl_xor_sync(kAll, weight, distance);
    const std::uint32_t other_label = __shfl_xor_sync(kAll, label, distance);
    if (other > weight || (other == weight && other_label < label))
      weight = other, label = other_label;
  }
  if (lane == 0) next[row] = weight == 0 ? own : label;
}

unsigned blocks(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

DeviceArray<std::uint32_t> find_clusters(const EdgeOffset* begin, const EdgeOffset* end,
                                         const Slot* columns, std::uint64_t rows, int rounds,
                                         cudaStream_t stream) {
  DeviceArray<std::uint32_t> labels(rows), next(rows);
  if (rows == 0) return labels;
  own_labels<<<blocks(rows), kThreads, 0, stream>>>(labels.data(), rows);
  for (int round = 1; round <= rounds; ++round) {
    vote<<<blocks(rows * 32), kThreads, 0, stream>>>(
        begin, end, columns, rows, static_cast<std::uint32_t>(round), labels.data(), next.data());
    std::swap(labels, next);
  }
  check_cuda(cudaGetLastError(), "finding clusters");
  check_cuda(cudaStreamSynchronize(stream), "finding clusters");
  return labels;
}

}  // namespace plait
