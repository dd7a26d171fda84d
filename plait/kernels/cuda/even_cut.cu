// Finding tiles takes a binary search each. Which rows are cut follows from the tiles alone: the
// host finds out, at one step per tile.
#include "plait/base/error.h"
#include "plait/kernels/cuda/even_cut.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;

__global__ void find_tiles(const EdgeOffset* offsets, std::uint64_t rows, EdgeOffset edges,
                           EvenTile* tiles, std::uint64_t count) {
  const std::uint64_t tile = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (tile < count) tiles[tile] = even_tile(offsets, rows, edges, tile);
}

}  // namespace

EvenCut::EvenCut(const EdgeOffset* offsets, std::uint64_t rows, EdgeOffset edges,
                 cudaStream_t stream)
    : offsets_(offsets) {
  const std::uint64_t tiles = even_tiles(edges, rows);
  require<UsageError>(rows < EvenTile::kCut && tiles < std::uint64_t{1} << 30,
                      "{} rows with {} edges are too many for one GPU", rows, edges);
  if (tiles == 0) return;
  size_ = static_cast<std::uint32_t>(tiles);
  tiles_ = DeviceArray<EvenTile>(tiles + 1);
  const auto blocks = static_cast<unsigned>((tiles + kThreads) / kThreads);
  find_tiles<<<blocks, kThreads, 0, stream>>>(offsets, rows, edges, tiles_.data(), tiles + 1);
  check_cuda(cudaGetLastError(), "cutting edges evenly");
  check_cuda(cudaStreamSynchronize(stream), "cutting edges evenly");
  const std::vector<EvenTile> found = tiles_.to_host();
  const EvenCutRows cut = cut_rows_of(found);
  cut_ = DeviceArray<CutRow>(std::span<const CutRow>(cut.rows));
  hubs_ = cut.hubs;
}

}  // namespace plait
