// The even cut (kernels/even_cut.h) of a CSR on the GPU.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/kernels/even_cut.h"

namespace plait {

// The tiles of one matrix and its rows that lie in several tiles, in memory of the GPU, which this
// object owns. Takes about a byte per hundred edges and rows.
class EvenCut {
 public:
  // No tiles.
  EvenCut() = default;
  // `offsets`: rows + 1 numbers in memory of the GPU, which outlive this object. There are fewer
  // than 2^31 rows. Waits for the stream. Throws DoesNotFitError.
  EvenCut(const EdgeOffset* offsets, std::uint64_t rows, EdgeOffset edges, cudaStream_t stream);

  const EdgeOffset* offsets() const { return offsets_; }
  // The tiles, and behind them the end of the matrix.
  const EvenTile* tiles() const { return tiles_.data(); }
  std::uint32_t size() const { return size_; }
  // The rows that lie in several tiles; the last hubs() of them lie in many.
  const CutRow* cut_rows() const { return cut_.data(); }
  std::uint32_t cut_size() const { return static_cast<std::uint32_t>(cut_.size()); }
  std::uint32_t hubs() const { return hubs_; }
  std::uint64_t partial_sums() const { return std::uint64_t{2} * size_; }

 private:
  const EdgeOffset* offsets_ = nullptr;
  DeviceArray<EvenTile> tiles_;
  DeviceArray<CutRow> cut_;
  std::uint32_t size_ = 0, hubs_ = 0;
};

}  // namespace plait
