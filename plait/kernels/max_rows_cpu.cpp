// The maximum over neighbours on the CPU. A row's greatest values and their ties stay in the
// first-level cache while its edges are read, once each, eight columns an instruction.
#include <algorithm>

#include "plait/kernels/fold_rows.h"
#include "plait/kernels/max_rows.h"
#include "plait/kernels/max_rule.h"

namespace plait {
namespace {

// Record: [greatest value | ties], each of `width`.
class MaxKernel {
 public:
  explicit MaxKernel(const MaxForward& args) : args_(args) {}

  void fold(std::uint64_t, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher, float* record) {
    std::fill_n(record, args_.width, Greatest::of_nothing().value);
    std::fill_n(record + args_.width, args_.width, Greatest::of_nothing().ties);
    for (EdgeOffset e = begin; e < end; ++e) {
      fetcher.fetch(1);
      add(record, args_.edges.x.row(args_.edges.columns[e]), nullptr);
    }
  }
  void join(float* record, const float* later) { add(record, later, later + args_.width); }
  void finish(std::uint64_t row, const float* record) {
    const bool empty = args_.edges.begin[row] == args_.edges.end[row];
    float* const y = args_.y + row * args_.width;
    if (empty)
      std::fill_n(y, args_.width, 0.0f);
    else
      std::copy_n(record, args_.width, y);
    if (args_.ties) std::copy_n(record + args_.width, args_.width, args_.ties + row * args_.width);
  }

 private:
  // others_ties: null if all are 1.
  void add(float* __restrict record, const float* __restrict other,
           const float* __restrict others_ties) const {
    float* __restrict ties = record + args_.width;
    const auto each = [&](auto ties_at) __attribute__((always_inline)) {
      for (std::uint64_t j = 0; j < args_.width; ++j) {
        Greatest greatest{record[j], ties[j]};
        greatest.add(other[j], ties_at(j));
        record[j] = greatest.value;
        ties[j] = greatest.ties;
      }
    };
    others_ties ? each([&](std::uint64_t j) { return others_ties[j]; })
                : each([](std::uint64_t) { return 1.0f; });
  }

  MaxForward args_;
};

// Record: the gradient.
class MaxGradientKernel {
 public:
  explicit MaxGradientKernel(const MaxBackward& args) : args_(args) {}

  void fold(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher,
            float* record) {
    float* __restrict const sum = record;
    const float* __restrict const x = args_.x + row * args_.width;
    std::fill_n(sum, args_.width, 0.0f);
    for (EdgeOffset e = begin; e < end; ++e) {
      fetcher.fetch(1);
      const float* __restrict const y = args_.edges.x.row(args_.edges.columns[e]);
      const float* __restrict const dy = y + row_stride(args_.width);
      for (std::uint64_t j = 0; j < args_.width; ++j) sum[j] += reaches(x[j], y[j]) ? dy[j] : 0.0f;
    }
  }
  void join(float* record, const float* later) {
    for (std::uint64_t j = 0; j < args_.width; ++j) record[j] += later[j];
  }
  void finish(std::uint64_t row, const float* record) {
    std::copy_n(record, args_.width, args_.dx + row * args_.width);
  }

 private:
  MaxBackward args_;
};

}  // namespace

void max_rows(const MaxForward& args) {
  if (args.width > 0) fold_rows(args.edges, {args.width, 2 * args.width}, MaxKernel(args));
}

void max_rows_backward(const MaxBackward& args) {
  if (args.width > 0)
    fold_rows(args.edges, {args.row_width(), args.width}, MaxGradientKernel(args));
}

}  // namespace plait
