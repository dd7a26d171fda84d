#include "plait/nn/operations/exact_sums.h"

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

// Rows are worked on kTerms at a time, and so are columns, so that the room for a block is bounded
// however wide matrices are.
template <class Body>
void for_each_block(std::int64_t count, Body body) {
  for (std::int64_t begin = 0; begin < count; begin += kTerms)
    body(begin, std::min(kTerms, count - begin));
}

// Powers of two: x * to, rounded, is a whole number, and * from turns it back.
struct Grid {
  torch::Tensor to, from;

  torch::Tensor whole(const torch::Tensor& x) const {
    return x.to(torch::kFloat64).mul_(to).round_();
  }
};

// Returns a grid for numbers up to `maxima` (float32, not negative), on which whole numbers are up
// to 2^bits. It is NaN where a maximum is not finite, so that results are NaN, too.
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

// Room for a block of rows as whole numbers up to 2^kBits, and for these numbers in halves,
// high * 2^kHalfBits + low: |high| <= 2^21, |low| <= 2^20.
//
// It is taken once, with the same size for few rows as for many, so that a rehearsal on few rows
// tells the memory of many (tensor_trace.h).
class Block {
 public:
  Block(std::int64_t columns, const torch::Tensor& like)
      : whole_(torch::empty({kTerms, std::min(kTerms, columns)},
                            like.options().dtype(torch::kFloat64))),
        high_(torch::empty_like(whole_)),
        low_(torch::empty_like(whole_)) {}

  // Returns x, of no more rows and columns, times `to`, rounded: float64.
  const torch::Tensor& take(const torch::Tensor& x, const torch::Tensor& to) {
    const auto part = [&](const torch::Tensor& room) {
      return room.narrow(0, 0, x.size(0)).narrow(1, 0, x.size(1));
    };
    whole = part(whole_), high = part(high_), low = part(low_);
    return whole.copy_(x).mul_(to).round_();
  }
  void split() {
    high.copy_(whole).mul_(1 / kHalf).round_();
    low.copy_(high).mul_(-kHalf).add_(whole);
  }

  torch::Tensor whole, high, low;  // of the rows that were taken

 private:
  torch::Tensor whole_, high_, low_;
};

// Exact sums of up to 2^26 whole numbers, each up to 2^53.
class Carried {
 public:
  void add(const torch::Tensor& whole) {
    const torch::Tensor high = (whole * (1 / kCarry)).round_();
    const torch::Tensor low = whole - high * kCarry;
    sums_ = sums_.defined() ? sums_.add_(torch::stack({high, low})) : torch::stack({high, low});
  }
  // Returns the sum over all ranks; where this rank has added nothing, it has `like`'s shape and
  // device.
  torch::Tensor total(const torch::Tensor& like, GraphHandle& graph) {
    if (!sums_.defined()) add(torch::zeros_like(like));
    graph.sum_on_hosts(sums_);
    return sums_[0] * kCarry + sums_[1];
  }

 private:
  static constexpr double kCarry = 1 << 26;
  torch::Tensor sums_;
};

// Returns x as float32. Adding 0 leaves no negative zero, which not all orders would give.
torch::Tensor rounded(const torch::Tensor& x) { return x.to(torch::kFloat32).add_(0.0f); }

}  // namespace

torch::Tensor exact_row_products(const torch::Tensor& a, const torch::Tensor& b) {
  const Grid a_grid = grid_of_rows(a), b_grid = grid_of_rows(b);
  const torch::Tensor b_whole = b_grid.whole(b);
  const torch::Tensor a_unit = a_grid.from * kHalf, b_unit = b_grid.from.squeeze(1);
  const torch::Tensor b_high = (b_whole * (1 / kHalf)).round_(), b_low = b_whole - b_high * kHalf;
  Block block(a.size(1), a);
  const torch::Tensor sums = torch::empty({kTerms, std::min(kTerms, b.size(0))}, b_whole.options()),
                      products = torch::empty_like(sums);
  torch::Tensor y = torch::empty({a.size(0), b.size(0)}, a.options());
  // Fills so many rows and columns of y.
  const auto fill = [&](std::int64_t row, std::int64_t rows, std::int64_t column,
                        std::int64_t columns) {
    const auto part = [&](const torch::Tensor& room) {
      return room.flatten().narrow(0, 0, rows * columns).view({rows, columns});
    };
    torch::Tensor sum = part(sums), product = part(products);
    sum.zero_();
    for_each_block(a.size(1), [&](std::int64_t first, std::int64_t terms) {
      block.take(a.narrow(0, row, rows).narrow(1, first, terms), a_grid.to.narrow(0, row, rows));
      block.split();
      const auto add = [&](const torch::Tensor& half, const torch::Tensor& other, double unit) {
        torch::mm_out(product, half, other.narrow(0, column, columns).narrow(1, first, terms).t());
        sum.add_(product.mul_(unit));
      };
      add(block.high, b_high, kHalf);
      add(block.high, b_low, 1);
      add(block.low, b_high, 1);
    });
    sum.mul_(a_unit.narrow(0, row, rows)).mul_(b_unit.narrow(0, column, columns));
    y.narrow(0, row, rows).narrow(1, column, columns).copy_(sum);
  };
  for_each_block(a.size(0), [&](std::int64_t row, std::int64_t rows) {
    for_each_block(b.size(0), [&](std::int64_t column, std::int64_t columns) {
      fill(row, rows, column, columns);
    });
  });
  return y.add_(0.0f);
}

torch::Tensor exact_row_sums(const torch::Tensor& x) {
  const Grid grid = grid_of_rows(x);
  const torch::Tensor whole = grid.whole(x);
  torch::Tensor sum = torch::zeros(grid.from.sizes(), whole.options());
  for_each_block(x.size(-1), [&](std::int64_t begin, std::int64_t count) {
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
  Block left(a.size(1), a), right(b.size(1), b);
  torch::Tensor sums = torch::zeros_like(none);  // of the highest part, and of the middle
  torch::Tensor highest = sums[0], middle = sums[1];
  const auto take = [](Block& block, const torch::Tensor& rows, const Grid& grid,
                       std::int64_t first, std::int64_t columns) {
    block.take(rows.narrow(1, first, columns), grid.to.narrow(0, first, columns));
    block.split();
  };
  for_each_block(a.size(0), [&](std::int64_t begin, std::int64_t rows) {
    sums.zero_();
    for_each_block(a.size(1), [&](std::int64_t i, std::int64_t height) {
      take(left, a.narrow(0, begin, rows), a_grid, i, height);
      for_each_block(b.size(1), [&](std::int64_t j, std::int64_t width) {
        take(right, b.narrow(0, begin, rows), b_grid, j, width);
        const auto part = [&](const torch::Tensor& of) {
          return of.narrow(0, i, height).narrow(1, j, width);
        };
        part(highest).addmm_(left.high.t(), right.high);
        part(middle).addmm_(left.high.t(), right.low).addmm_(left.low.t(), right.high);
      });
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
  Block block(x.size(1), x);
  const torch::Tensor sums = torch::empty_like(grid.to);
  for_each_block(x.size(0), [&](std::int64_t begin, std::int64_t rows) {
    for_each_block(x.size(1), [&](std::int64_t first, std::int64_t columns) {
      const torch::Tensor& whole = block.take(x.narrow(0, begin, rows).narrow(1, first, columns),
                                              grid.to.narrow(0, first, columns));
      sums.narrow(0, first, columns).copy_(whole.sum(0));
    });
    carried.add(sums);
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

}  // namespace plait
