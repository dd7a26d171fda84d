#include "plait/nn/exact_sums.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "plait/base/error.h"

namespace plait {
namespace {

constexpr int kHalfBits = 21, kBits = 2 * kHalfBits;
constexpr int kWholeBits = 53;  // of a float64: whole numbers up to 2^53 are exact
// Products of halves that are summed before anything may be rounded.
constexpr std::int64_t kTerms = std::int64_t{1} << (kWholeBits - kBits);
constexpr double kHalf = std::int64_t{1} << kHalfBits;

// Rows that are worked on at once: on the CPU so few that what they take of memory is next to
// nothing; on a GPU so many that its kernels have enough to do.
std::int64_t block_rows(const torch::Tensor& x) { return x.is_cuda() ? kTerms : 64; }

template <class Body>
void for_each_block(std::int64_t count, std::int64_t most, Body body) {
  for (std::int64_t begin = 0; begin < count; begin += most)
    body(begin, std::min(most, count - begin));
}

// Powers of two: x * to, rounded, is a whole number, and * from turns it back.
struct Grid {
  torch::Tensor to, from;

  Grid narrow(std::int64_t begin, std::int64_t count) const {
    return {to.narrow(0, begin, count), from.narrow(0, begin, count)};
  }
  torch::Tensor whole(const torch::Tensor& x) const {
    return x.to(torch::kFloat64).mul_(to).round_();
  }
};

// Of numbers up to `maxima` (float32, not negative): whole numbers are up to 2^bits. NaN where a
// maximum is not finite, so that its results are.
Grid grid_of(const torch::Tensor& maxima, int bits = kBits) {
  constexpr std::int64_t kBias = 1023, kFractionBits = 52, kFloatRange = 300;
  const torch::Tensor exponent = maxima.to(torch::kFloat64)
                                     .view(torch::kInt64)
                                     .bitwise_right_shift(kFractionBits)
                                     .sub_(kBias - 1)
                                     .clamp_(-kFloatRange, kFloatRange);  // maximum < 2^exponent
  const auto power = [](const torch::Tensor& e) {
    return (e + kBias).bitwise_left_shift(kFractionBits).view(torch::kFloat64);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {torch::where(maxima.isfinite(), power(bits - exponent), nan), power(exponent - bits)};
}

Grid grid_of_rows(const torch::Tensor& x) { return grid_of(x.abs().amax(-1, true)); }

torch::Tensor column_maxima(const torch::Tensor& x) {
  return x.size(0) > 0 ? x.abs().amax(0) : torch::zeros({x.size(1)}, x.options());
}

// Whole numbers up to 2^kBits as high * 2^kHalfBits + low: |high| <= 2^21, |low| <= 2^20.
struct Halves {
  torch::Tensor high, low;

  explicit Halves(const torch::Tensor& whole)
      : high((whole * (1 / kHalf)).round_()), low(whole - high * kHalf) {}
  // Two factors' (high, low) and (low, high) beside each other give what is of the middle.
  torch::Tensor straight(int dimension) const { return torch::cat({high, low}, dimension); }
  torch::Tensor crossed(int dimension) const { return torch::cat({low, high}, dimension); }
};

// Exact sums of whole numbers, each up to 2^53, of which there may be 2^26.
class Carried {
 public:
  void add(const torch::Tensor& whole) {
    const torch::Tensor high = (whole * (1 / kCarry)).round_();
    const torch::Tensor low = whole - high * kCarry;
    sums_ = sums_.defined() ? sums_.add_(torch::stack({high, low})) : torch::stack({high, low});
  }
  // Over all ranks; of `like`'s shape and device where this rank has added nothing.
  torch::Tensor total(const torch::Tensor& like, GraphHandle& graph) {
    if (!sums_.defined()) add(torch::zeros_like(like));
    graph.sum_on_hosts(sums_);
    return sums_[0] * kCarry + sums_[1];
  }

 private:
  static constexpr double kCarry = 1 << 26;
  torch::Tensor sums_;
};

// As float32, without a negative zero.
torch::Tensor rounded(const torch::Tensor& x) { return x.to(torch::kFloat32).add_(0.0f); }

}  // namespace

torch::Tensor exact_row_products(const torch::Tensor& a, const torch::Tensor& b) {
  struct Factor {
    torch::Tensor high, crossed;
  };
  const Grid a_grid = grid_of_rows(a), b_grid = grid_of_rows(b);
  const torch::Tensor b_whole = b_grid.whole(b);
  std::vector<Factor> factors;
  for_each_block(b.size(1), kTerms, [&](std::int64_t begin, std::int64_t count) {
    const Halves halves(b_whole.narrow(1, begin, count));
    factors.push_back({halves.high.t(), halves.crossed(1).t()});
  });
  torch::Tensor y = torch::empty({a.size(0), b.size(0)}, a.options());
  for_each_block(a.size(0), block_rows(a), [&](std::int64_t begin, std::int64_t rows) {
    const Grid grid = a_grid.narrow(begin, rows);
    const torch::Tensor whole = grid.whole(a.narrow(0, begin, rows));
    torch::Tensor sum = torch::zeros({rows, b.size(0)}, whole.options());
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const std::int64_t first = static_cast<std::int64_t>(k) * kTerms;
      const Halves halves(whole.narrow(1, first, factors[k].high.size(0)));
      sum.add_((halves.high.matmul(factors[k].high) * kHalf)
                   .add_(halves.straight(1).matmul(factors[k].crossed)));
    }
    y.narrow(0, begin, rows)
        .copy_(rounded(sum.mul_(grid.from * kHalf).mul_(b_grid.from.squeeze(1))));
  });
  return y;
}

torch::Tensor exact_row_sums(const torch::Tensor& x) {
  const Grid grid = grid_of_rows(x);
  const torch::Tensor whole = grid.whole(x);
  torch::Tensor sum = torch::zeros(grid.from.sizes(), whole.options());
  for_each_block(x.size(-1), kTerms, [&](std::int64_t begin, std::int64_t count) {
    sum.add_(whole.narrow(-1, begin, count).sum(-1, true));
  });
  return rounded(sum.mul_(grid.from)).squeeze(-1);
}

torch::Tensor exact_column_products(const torch::Tensor& a, const torch::Tensor& b,
                                    GraphHandle& graph) {
  torch::Tensor maxima = torch::cat({column_maxima(a), column_maxima(b)});
  graph.max_on_hosts(maxima);
  const Grid a_grid = grid_of(maxima.narrow(0, 0, a.size(1))),
             b_grid = grid_of(maxima.narrow(0, a.size(1), b.size(1)));
  const torch::Tensor none =
      torch::zeros({2, a.size(1), b.size(1)}, a.options().dtype(torch::kFloat64));
  Carried carried;
  for_each_block(a.size(0), kTerms, [&](std::int64_t first, std::int64_t terms) {
    torch::Tensor sums = torch::zeros_like(none);  // of the highest part, and of the middle
    torch::Tensor highest = sums[0], middle = sums[1];
    for_each_block(terms, block_rows(a), [&](std::int64_t begin, std::int64_t rows) {
      const Halves left(a_grid.whole(a.narrow(0, first + begin, rows))),
          right(b_grid.whole(b.narrow(0, first + begin, rows)));
      highest.addmm_(left.high.t(), right.high);
      middle.addmm_(left.straight(0).t(), right.crossed(0));
    });
    carried.add(sums);
  });
  const torch::Tensor total = carried.total(none, graph);
  const torch::Tensor sum = (total[0] * kHalf).add_(total[1]);
  return rounded(sum * (a_grid.from.unsqueeze(1) * kHalf) * b_grid.from);
}

torch::Tensor exact_column_sums(const torch::Tensor& x, GraphHandle& graph) {
  torch::Tensor maxima = column_maxima(x);
  graph.max_on_hosts(maxima);
  const Grid grid = grid_of(maxima);
  Carried carried;
  for_each_block(x.size(0), kTerms, [&](std::int64_t first, std::int64_t terms) {
    torch::Tensor sum = torch::zeros_like(grid.from);
    for_each_block(terms, block_rows(x), [&](std::int64_t begin, std::int64_t rows) {
      sum.add_(grid.whole(x.narrow(0, first + begin, rows)).sum(0));
    });
    carried.add(sum);
  });
  return carried.total(grid.from, graph).mul_(grid.from).add_(0.0);
}

torch::Tensor exact_group_sums(const torch::Tensor& x, const torch::Tensor& group,
                               std::int64_t groups, std::uint64_t most, GraphHandle& graph) {
  const int bits = kWholeBits - static_cast<int>(std::bit_width(most));
  require<DoesNotFitError>(bits >= std::numeric_limits<float>::digits,
                           "a group of {} rows is too large to be summed exactly", most);
  torch::Tensor maxima = torch::zeros({groups, x.size(1)}, x.options());
  maxima.scatter_reduce_(0, group.unsqueeze(1).expand_as(x), x.abs(), "amax");
  graph.max_on_hosts(maxima);
  const Grid grid = grid_of(maxima, bits);
  torch::Tensor sums = torch::zeros_like(grid.from);
  sums.index_add_(0, group, x.to(torch::kFloat64).mul_(grid.to.index_select(0, group)).round_());
  graph.sum_on_hosts(sums);
  return rounded(sums.mul_(grid.from));
}

std::uint64_t exact_block_bytes_on_gpu(std::uint64_t floats) {
  constexpr std::uint64_t kTimes = 5;  // whole, in halves, and these beside each other
  return static_cast<std::uint64_t>(kTerms) * kTimes * floats * sizeof(double);
}

}  // namespace plait
