// Exact sums against sums in long double; no order of rows changes a bit of them.
#include "plait/nn/operations/exact_sums.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "plait/nn/memory/tensor_trace.h"
#include "plait/nn/operations/dense.h"
#include "tests/support/dense_graph.h"

namespace plait {
namespace {

using torch::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && torch::equal(a.view(torch::kInt32), b.view(torch::kInt32));
}

// Checks a b^T to the greatest error that is promised: of the unit of each product, and of
// rounding.
void expect_products(const Tensor& found, const Tensor& a, const Tensor& b) {
  ASSERT_EQ(found.sizes(), (std::vector{a.size(0), b.size(0)}));
  const auto a_at = a.accessor<float, 2>(), b_at = b.accessor<float, 2>();
  for (std::int64_t i = 0; i < a.size(0); ++i)
    for (std::int64_t j = 0; j < b.size(0); ++j) {
      long double sum = 0, most_a = 0, most_b = 0;
      for (std::int64_t k = 0; k < a.size(1); ++k) {
        const long double x = a_at[i][k], y = b_at[j][k];
        sum += x * y;
        most_a = std::max(most_a, std::fabs(x)), most_b = std::max(most_b, std::fabs(y));
      }
      const long double unit = most_a * most_b * static_cast<long double>(a.size(1)) * 0x1p-41L;
      const auto y = found[i][j].item<float>();
      const long double rounding =
          std::fabs(sum) * 0x1p-24L + std::numeric_limits<float>::denorm_min();
      ASSERT_LE(std::fabs(y - sum), unit + rounding) << i << ", " << j;
    }
}

// Draws powers of two between 2^-range and 2^range.
Tensor wide(std::vector<std::int64_t> shape, double range) {
  return torch::randn(shape) * torch::exp2((torch::rand(shape) * 2 - 1) * range);
}

class ExactSums : public testing::Test {
 protected:
  ExactSums() { torch::manual_seed(5); }
  GraphHandle& graph() { return *handle_; }

  const test::DenseGraph few_{false};
  const c10::intrusive_ptr<GraphHandle> handle_ = few_.handle({});
};

TEST_F(ExactSums, ProductsAreThoseOfLongDouble) {
  for (const double range : {0.0, 12.0, 60.0})
    for (const std::int64_t terms : {1, 5, 64, 2048, 2500}) {
      const Tensor a = wide({3, terms}, range), b = wide({4, terms}, range);
      expect_products(exact_row_products(a, b), a, b);
      expect_products(exact_column_products(a.t().contiguous(), b.t().contiguous(), graph()), a, b);
    }
}

TEST_F(ExactSums, TakeTheSmallestTheLargestAndNone) {
  const float least = std::numeric_limits<float>::denorm_min();
  const float most = std::numeric_limits<float>::max();
  const Tensor a = torch::tensor(
                   {{least, 3 * least, 0.0f}, {0.0f, 0.0f, 0.0f}, {1.0f, -1.0f, 2.0f}}),
               b = torch::tensor({{1.0f, -1.0f, 4.0f}, {0.5f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}});
  expect_products(exact_row_products(a, b), a, b);
  EXPECT_FALSE(torch::signbit(exact_row_products(a, -b)[1]).any().item<bool>());
  const Tensor large = torch::full({1, 2}, most);
  EXPECT_EQ(exact_row_products(large, large).item<float>(), kInfinity);
  EXPECT_EQ(exact_row_products(large, torch::tensor({{1.0f, -1.0f}})).item<float>(), 0);
  EXPECT_EQ(exact_column_sums(large.t().contiguous(), graph()).item<double>(), 2.0 * most);
  EXPECT_EQ(exact_column_sums(torch::zeros({0, 3}), graph()).sizes(), std::vector<std::int64_t>{3});
  EXPECT_EQ(exact_row_products(torch::zeros({0, 3}), b).sizes(), (std::vector<std::int64_t>{0, 3}));
}

TEST_F(ExactSums, WhatIsNotFiniteIsNeverANumber) {
  for (const float bad : {kInfinity, -kInfinity, kNan})
    for (const std::int64_t at : {0, 70}) {
      Tensor a = torch::randn({80, 6});
      const Tensor b = torch::randn({80, 5});
      a[at][2] = bad;
      const auto expect_nan = [&](const Tensor& found, const Tensor& where) {
        EXPECT_TRUE(torch::equal(found.isnan(), where.expand_as(found))) << bad;
      };
      const Tensor row = torch::arange(80) == at, column = torch::arange(6) == 2;
      expect_nan(exact_row_products(a, torch::randn({4, 6})), row.unsqueeze(1));
      expect_nan(exact_row_products(torch::randn({4, 6}), a), row.unsqueeze(0));
      expect_nan(exact_row_sums(a), row);
      expect_nan(exact_column_products(a, b, graph()), column.unsqueeze(1));
      expect_nan(exact_column_products(b, a, graph()), column.unsqueeze(0));
      expect_nan(exact_column_sums(a, graph()), column);
      const Tensor group = torch::arange(80) % 3;
      expect_nan(exact_group_sums(a, group, 3, 27, graph()),
                 (torch::arange(3) == at % 3).unsqueeze(1).logical_and(column));
    }
}

// More rows than are summed before sums are carried come in another order, and on other threads: of
// numbers of many sizes, and of the largest that the grid takes.
TEST_F(ExactSums, NoOrderOfRowsChangesABit) {
  const std::int64_t rows = 9999;
  const auto some_of = [&](std::int64_t columns) {
    return torch::where(torch::arange(columns) % 2 == 0, wide({rows, columns}, 10),
                        torch::rand({rows, columns}) * 0.01 + 0.99);
  };
  const Tensor a = some_of(7), b = some_of(5);
  const Tensor group = torch::randint(9, {rows}, torch::kInt64);
  const auto all = [&](const Tensor& order) {
    const Tensor x = a.index_select(0, order), y = b.index_select(0, order);
    const Tensor g = group.index_select(0, order);
    return std::vector{
        exact_column_products(x, y, graph()), exact_column_sums(x, graph()).to(torch::kFloat32),
        exact_group_sums(x, g, 9, static_cast<std::uint64_t>(rows), graph()),
        torch::zeros({rows, 3}).index_copy(
            0, order, exact_row_products(x, b.narrow(0, 0, 3).repeat({1, 2}).narrow(1, 0, 7))),
        torch::zeros({rows}).index_copy(0, order, exact_row_sums(x))};
  };
  const auto wanted = all(torch::arange(rows));
  const int threads = torch::get_num_threads();
  for (const int some : {1, 2, 3}) {
    torch::set_num_threads(some);
    const auto found = all(torch::randperm(rows));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(same_bits(found[i], wanted[i])) << i << " on " << some << " threads";
  }
  torch::set_num_threads(threads);
  expect_products(wanted[0].narrow(0, 0, 1), a.t().narrow(0, 0, 1).contiguous(),
                  b.t().contiguous());
  EXPECT_TRUE(torch::allclose(wanted[1].to(torch::kFloat64), a.to(torch::kFloat64).sum(0), 1e-6));
}

// Columns, and rows of the other matrix, are worked on some at a time.
TEST_F(ExactSums, WideMatricesHaveTheBitsOfTheirParts) {
  constexpr std::int64_t kWide = 5000;
  const Tensor a = wide({3, 9}, 10), b = wide({kWide, 9}, 10);
  const Tensor rows = exact_row_products(a, b);
  const Tensor x = wide({70, kWide}, 10), y = wide({70, 2}, 10);
  const Tensor tall = exact_column_products(x, y, graph());
  const Tensor flat = exact_column_products(y, x, graph());
  const Tensor sums = exact_column_sums(x, graph());
  EXPECT_TRUE(same_bits(tall, flat.t().contiguous()));
  for (const std::int64_t at : {0, 2040, 4990}) {
    const auto some = [&](const Tensor& of, int dimension) { return of.narrow(dimension, at, 10); };
    EXPECT_TRUE(same_bits(exact_row_products(a, some(b, 0)), some(rows, 1).contiguous()));
    EXPECT_TRUE(same_bits(exact_column_products(some(x, 1), y, graph()), some(tall, 0)));
    EXPECT_TRUE(torch::equal(exact_column_sums(some(x, 1), graph()), some(sums, 0)));
  }
}

// 2^11 rows of 8 bytes of so many columns would take 1.5 GiB.
TEST_F(ExactSums, RoomForABlockIsBounded) {
  const Tensor one = torch::ones({1, 1}), wide = torch::ones({100000, 1});
  const TensorTrace trace = trace_tensors([&](const auto&) {
    EXPECT_EQ(exact_row_products(one, wide).sum().item<float>(), 100000);
    EXPECT_EQ(exact_column_products(wide.t(), one, graph()).sum().item<float>(), 100000);
    EXPECT_EQ(exact_column_sums(wide.t(), graph()).sum().item<double>(), 100000);
  });
  for (const auto& event : trace.events) EXPECT_LE(event.bytes, std::uint64_t{32} << 20);
}

// The sum reaches more than 2^53 units before they go again.
TEST_F(ExactSums, WhatCancelsIsNothing) {
  const Tensor v = torch::rand({8000, 3}) * 0.01 + 0.99, w = torch::rand({8000, 2}) * 0.01 + 0.99;
  const Tensor found = exact_column_products(torch::cat({v, -v}), torch::cat({w, w}), graph());
  EXPECT_TRUE(same_bits(found, torch::zeros({3, 2}))) << found;
}

// Operations of models on an exact graph beside libtorch's own, with their gradients.
class ExactOperations : public ExactSums {
 protected:
  ExactOperations()
      : exact_(c10::make_intrusive<GraphHandle>(
            *few_.world, few_.graph, false, few_.partition,
            ExchangeOptions{.route = {.exact = true}, .max_width = 8})) {}

  // Compares f(graph, tensors) of both graphs: results and gradients are to be the same to 1e-5.
  template <class F>
  void expect_same(const std::vector<Tensor>& given, F f) {
    const Tensor direction = torch::randn_like(f(handle_, given));
    std::vector<std::vector<Tensor>> both;
    for (const auto& graph : {handle_, exact_}) {
      std::vector<Tensor> tensors;
      for (const Tensor& t : given) tensors.push_back(t.detach().clone().requires_grad_());
      const Tensor y = f(graph, tensors);
      std::vector<Tensor> found = torch::autograd::grad({y}, tensors, {direction});
      found.push_back(y.detach());
      both.push_back(found);
    }
    for (std::size_t i = 0; i < both[0].size(); ++i) test::expect_close(both[1][i], both[0][i]);
  }

  const GraphRef exact_;
};

TEST_F(ExactOperations, AreThoseOfLibtorch) {
  const auto n = static_cast<std::int64_t>(few_.graph.vertices());
  const Tensor x = torch::randn({n, 6}), weight = torch::randn({4, 6}), bias = torch::randn({4}),
               scale = torch::randn({6});
  const Tensor labels = (torch::rand({n, 6}) < 0.5).to(torch::kFloat32);
  expect_same({x, weight, bias}, [](const GraphRef& g, const std::vector<Tensor>& t) {
    return linear(t[0], t[1], t[2], g);
  });
  expect_same({x, scale}, [](const GraphRef& g, const std::vector<Tensor>& t) {
    return scale_columns(t[0], t[1], g);
  });
  expect_same({x}, [](const GraphRef& g, const std::vector<Tensor>& t) {
    return torch::stack(
        {row_sums(t[0], g), row_means(t[0].view({-1, 3, 2}).transpose(1, 2), g).sum(1)});
  });
  for (const char* activation : {"relu", "elu"})
    expect_same({x}, [&](const GraphRef& g, const std::vector<Tensor>& t) {
      return activate(t[0], activation, g);
    });
  expect_same({x * 20}, [&](const GraphRef& g, const std::vector<Tensor>& t) {
    return binary_cross_entropy(t[0], labels, g);
  });
  EXPECT_FLOAT_EQ(part_of_total(x.flatten(), exact_).item<float>(), x.sum().item<float>());
}

// A row's result, and its gradient, have the same bits whichever rows stand beside it: libtorch's
// product of one row, or its elu() of the last numbers, differs from that of many.
TEST_F(ExactOperations, ARowDoesNotDependOnTheOthers) {
  const std::int64_t n = 301, width = 113;
  const Tensor x = torch::randn({n, width}), labels = (x > 0.3).to(torch::kFloat32),
               weight = torch::randn({5, width});
  using Operation = std::function<Tensor(const Tensor& rows, const Tensor& labels)>;
  const std::vector<Operation> operations{
      [&](const Tensor& rows, const Tensor&) { return linear(rows, weight, {}, exact_); },
      [&](const Tensor& rows, const Tensor&) { return row_sums(rows, exact_); },
      [&](const Tensor& rows, const Tensor&) { return activate(rows, "elu", exact_); },
      [&](const Tensor& rows, const Tensor& y) { return binary_cross_entropy(rows, y, exact_); }};
  for (std::size_t k = 0; k < operations.size(); ++k) {
    const auto both = [&](std::int64_t begin, std::int64_t count) {
      const Tensor rows = x.narrow(0, begin, count).clone().requires_grad_();
      const Tensor y = operations[k](rows, labels.narrow(0, begin, count));
      return std::pair(y.detach(), torch::autograd::grad({y.sum()}, {rows})[0]);
    };
    const auto [all, gradient] = both(0, n);
    for (const auto& [begin, count] : {std::pair{0, 1}, {300, 1}, {7, 13}, {100, 200}}) {
      const auto [some, gradient_of_some] = both(begin, count);
      EXPECT_TRUE(same_bits(some, all.narrow(0, begin, count))) << k << " from " << begin;
      EXPECT_TRUE(same_bits(gradient_of_some, gradient.narrow(0, begin, count)))
          << k << " from " << begin;
    }
  }
}

// Ones are 2^41 units, so that the sum is beyond 2^53 of them when single units come.
TEST_F(ExactSums, CarryWhatAFloat64CannotHold) {
  const std::int64_t ones = 12000, units = 3001;
  const Tensor x = torch::cat({torch::ones({ones}), torch::full({units}, 0x1p-41f)});
  const auto wanted = static_cast<double>(ones + units * 0x1p-41L);
  for (int i = 0; i < 5; ++i) {
    const Tensor some = x.index_select(0, torch::randperm(ones + units)).unsqueeze(1);
    EXPECT_EQ(exact_column_sums(some, graph()).item<double>(), wanted);
  }
}

TEST_F(ExactOperations, NoOrderChangesALoss) {
  const Tensor losses = torch::cat({torch::full({1000}, 0x1p30f), torch::full({9000}, 0x1p-20f)});
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(part_of_total(losses.index_select(0, torch::randperm(10000)), exact_).item<double>(),
              1000 * 0x1p30);
}

}  // namespace
}  // namespace plait
