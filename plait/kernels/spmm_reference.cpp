// The SpMM as it is defined, in double precision: row by row, edge by edge, column by column.
#include <vector>

#include "plait/kernels/spmm.h"

namespace plait {

void spmm_reference(const SpmmArgs& args) {
  std::vector<double> sum(args.width);
  for (std::size_t i = 0; i < args.begin.size(); ++i) {
    sum.assign(args.width, 0.0);
    for (EdgeOffset e = args.begin[i]; e < args.end[i]; ++e) {
      const double weight = args.weights ? double{args.weights[e]} : 1.0;
      std::uint64_t row = args.columns[e];
      const float* memory = args.x.base;
      if (args.x.peers && row >= args.x.own) {
        const std::uint64_t halo = row - args.x.own;
        memory = args.x.peers[args.x.halo_owner[halo]];
        row = args.x.halo_row[halo];
      }
      for (std::uint64_t j = 0; j < args.width; ++j)
        sum[j] += weight * double{memory[row * args.x.stride + j]};
    }
    const double scale = args.row_scale ? double{args.row_scale[i]} : 1.0;
    for (std::uint64_t j = 0; j < args.width; ++j)
      args.y[i * args.y_stride + j] = static_cast<float>(scale * sum[j]);
  }
}

}  // namespace plait
