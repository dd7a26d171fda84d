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
      const float* row = args.x.row(args.columns[e]);
      for (std::uint64_t j = 0; j < args.width; ++j) sum[j] += weight * double{row[j]};
    }
    const double scale = args.row_scale ? double{args.row_scale[i]} : 1.0;
    for (std::uint64_t j = 0; j < args.width; ++j)
      args.y[i * args.y_stride + j] = static_cast<float>(scale * sum[j]);
  }
}

}  // namespace plait
