// The part of an owner in strategy `partial`: it sums its rows for a peer that reads many of them
// into few of its own. This moves the bytes of a sum over the edges to these rows, which the peer
// is spared.
#include "plait/exchange/cuda/strategy.cuh"
#include "plait/kernels/row_cut.h"

namespace plait {

PeerSums::PeerSums(const RowSums& sums, std::uint64_t own, cudaStream_t stream)
    : sums_(sums),
      own_(own),
      groups_(sums.offsets.data(), sums.offsets.data() + 1, sums.count(),
              {.most = group_size(sums.edges(), sums.count())}, stream) {}

void PeerSums::run(const DeviceProduct& p, const float* own, float* out, cudaStream_t stream) {
  spmm({.groups = &groups_,
        .columns = sums_.row.data(),
        .weights = p.weighted && sums_.weights.size() > 0 ? sums_.weights.data() : nullptr,
        .x = p.rows(own),
        .x_rows = own_,
        .width = p.width,
        .y = {out, DType::f32, p.stride()},
        .partial_sums = partial_sums_.data()},
       stream);
}

}  // namespace plait
