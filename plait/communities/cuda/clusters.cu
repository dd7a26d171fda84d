// A warp works on one row: each lane holds the label of one neighbour, and lanes with equal labels
// find each other by a match instruction.
#include "plait/base/cuda/one_each.cuh"
#include "plait/communities/cuda/clusters.cuh"
#include "plait/communities/cuda/warp_vote.cuh"

namespace plait {
namespace {

__global__ void own_labels(std::uint32_t* labels, std::uint64_t rows) {
  const std::uint64_t row = item_of_thread();
  if (row < rows) labels[row] = static_cast<std::uint32_t>(row);
}

__global__ void vote(const EdgeOffset* begin, const EdgeOffset* end, const Slot* columns,
                     std::uint64_t rows, std::uint32_t round, const std::uint32_t* labels,
                     std::uint32_t* next) {
  const std::uint64_t row = item_of_thread() / kWarp;
  if (row >= rows) return;
  const std::uint32_t label = sampled_label(begin, end, columns, rows, row, round, labels);
  const std::uint32_t best = heaviest_label(label, labels[row], round);
  if (threadIdx.x % kWarp == 0) next[row] = best;
}

}  // namespace

DeviceArray<std::uint32_t> find_clusters(const EdgeOffset* begin, const EdgeOffset* end,
                                         const Slot* columns, std::uint64_t rows, int rounds,
                                         cudaStream_t stream) {
  DeviceArray<std::uint32_t> labels(rows), next(rows);
  if (rows == 0) return labels;
  own_labels<<<blocks_of_items(rows), kThreadsOfItems, 0, stream>>>(labels.data(), rows);
  for (int round = 1; round <= rounds; ++round) {
    vote<<<blocks_of_items(rows * kWarp), kThreadsOfItems, 0, stream>>>(
        begin, end, columns, rows, static_cast<std::uint32_t>(round), labels.data(), next.data());
    std::swap(labels, next);
  }
  check_cuda(cudaGetLastError(), "finding clusters");
  check_cuda(cudaStreamSynchronize(stream), "finding clusters");
  return labels;
}

}  // namespace plait
