// The extremum over neighbours on the CPU. A row's extreme values and their ties stay in the
// first-level cache while its edges are read, once each, eight columns per instruction.
#include "plait/kernels/extremum.h"

#include <algorithm>

#include "plait/kernels/cpu/fold_rows.h"
#include "plait/kernels/extremum_rule.h"

namespace plait {
namespace {

// Record: [extreme value | ties], each of `width`.
template <Extremum kWhich>
class ExtremumKernel {
 public:
  explicit ExtremumKernel(const ExtremumForward& args) : args_(args) {}

  void fold(std::uint64_t, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher, float* record) {
    std::fill_n(record, args_.width, Extreme<kWhich>::of_nothing().value);
    std::fill_n(record + args_.width, args_.width, Extreme<kWhich>::of_nothing().ties);
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
        Extreme<kWhich> extreme{record[j], ties[j]};
        extreme.add(other[j], ties_at(j));
        record[j] = extreme.value;
        ties[j] = extreme.ties;
      }
    };
    others_ties ? each([&](std::uint64_t j) { return others_ties[j]; })
                : each([](std::uint64_t) { return 1.0f; });
  }

  ExtremumForward args_;
};

// Record: the gradient.
class GradientKernel {
 public:
  explicit GradientKernel(const ExtremumBackward& args) : args_(args) {}

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
  ExtremumBackward args_;
};

}  // namespace

void apply(const ExtremumForward& args) {
  if (args.width == 0) return;
  const FoldWidths width{args.width, 2 * args.width};
  if (args.which == Extremum::greatest)
    fold_rows(args.edges, width, ExtremumKernel<Extremum::greatest>(args));
  else
    fold_rows(args.edges, width, ExtremumKernel<Extremum::least>(args));
}

void apply(const ExtremumBackward& args) {
  if (args.width > 0) fold_rows(args.edges, {args.row_width(), args.width}, GradientKernel(args));
}

}  // namespace plait
