// The SpMM as it is defined, in double precision: row by row, edge by edge, column by column.
#include <vector>

#include "plait/base/number.h"
#include "plait/kernels/spmm.h"

namespace plait {

void spmm_reference(const SpmmArgs& args) {
  std::vector<double> sum(args.width);
  for (std::size_t i = 0; i < args.begin.size(); ++i) {
    sum.assign(args.width, 0.0);
    for (EdgeOffset e = args.begin[i]; e < args.end[i]; ++e) {
      const double weight = args.weights ? double{args.weights[e]} : 1.0;
      with_number(args.x_type, [&]<class T>(T) {
        const T* row = nullptr;
        if constexpr (std::is_same_v<T, float>)
          row = args.x.row(args.columns[e]);
        else
          row = reinterpret_cast<const T*>(args.x.base) + args.columns[e] * args.x.stride;
        for (std::uint64_t j = 0; j < args.width; ++j) sum[j] += weight * double{widened(row[j])};
      });
    }
    const double scale = args.row_scale ? double{args.row_scale[i]} : 1.0;
    for (std::uint64_t j = 0; j < args.width; ++j)
      args.y[i * args.y_stride + j] = static_cast<float>(scale * sum[j]);
  }
}

}  // namespace plait
