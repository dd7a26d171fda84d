#include "plait/embedding/bag_maxima.h"

#include <algorithm>

#include "plait/base/number.h"
#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kMaximaGrain = 16;

// Calls row(i, y_i) for each row of y, which is 0, by all threads.
template <class Row>
void for_rows(const SpmmArgs& args, Row row) {
  parallel_blocks(args.begin.size(), kMaximaGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      float* const y = args.y + i * args.y_stride;
      std::fill_n(y, args.width, 0.0f);
      row(i, y);
    }
  });
}

}  // namespace

void take_maxima(const SpmmArgs& args, const Slot* places, Slot* found) {
  for_rows(args, [&](std::size_t i, float* __restrict y) {
    Slot* __restrict const at = found + i * args.y_stride;
    std::fill_n(at, args.width, kNoPlace);
    with_number(args.x_type, [&]<class T>(T) {
      for (EdgeOffset e = args.begin[i]; e < args.end[i]; ++e) {
        const Slot place = places == nullptr ? static_cast<Slot>(e - args.begin[i]) : places[e];
        const T* __restrict const x =
            reinterpret_cast<const T*>(args.x.base) + args.columns[e] * args.x.stride;
        for (std::uint64_t c = 0; c < args.width; ++c) {
          Placed most{y[c], at[c]};
          most.take({widened(x[c]), place});
          y[c] = most.value;
          at[c] = most.place;
        }
      }
    });
  });
}

void sum_maxima(const SpmmArgs& args, const Slot* places, const RowSource& found) {
  for_rows(args, [&](std::size_t i, float* __restrict y) {
    for (EdgeOffset e = args.begin[i]; e < args.end[i]; ++e) {
      const float* __restrict const x = args.x.row(args.columns[e]);
      const Slot* __restrict const at = found.row_of<Slot>(args.columns[e]);
      const Slot place = places[e];
      for (std::uint64_t c = 0; c < args.width; ++c) y[c] += at[c] == place ? x[c] : 0.0f;
    }
  });
}

}  // namespace plait
