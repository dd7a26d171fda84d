// One layer of attention on a graph of one rank, with all that it reads, both ways.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "plait/kernels/attention.h"
#include "tests/support/random_graph.h"

namespace plait::test {

struct AttentionOut {
  std::vector<float> y, u, b, norm;
};

struct AttentionGradient {
  std::vector<float> dh, ds;
};

// Ids of vertices are far apart, so that the whole of an id is seen to count.
struct AttentionCase {
  BothWays edges;
  AttentionShape shape;
  Dropout dropout;
  std::uint64_t vertices, stride;  // of rows of x, in floats
  std::vector<float> x, t, dy;     // x: [h | s], heads of h padded
  std::vector<float> h, s;         // the same without gaps
  std::vector<std::uint64_t> ids;

  struct Options {
    AttentionShape shape;
    float p = 0;
    std::uint64_t padding = 0;  // floats behind each row of x
    float scores = 1;           // s and t are in -scores .. scores
    unsigned seed = 1;
  };

  AttentionCase(BothWays graph, const Options& options)
      : edges(std::move(graph)),
        shape(options.shape),
        dropout(options.seed, options.p),
        vertices(edges.graph.vertices()),
        stride(shape.tail() + shape.heads + options.padding),
        x(vertices * stride),
        t(vertices * shape.heads),
        dy(vertices * shape.width()),
        ids(vertices) {
    std::mt19937 random(options.seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = uniform(random) * (i % stride < shape.tail() ? 1 : options.scores);
    for (float& value : t) value = uniform(random) * options.scores;
    for (float& value : dy) value = uniform(random);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = (i % 3 << 40) + i * 7;
    take_own();
  }

  // Takes h and s from x; must be called after a test has written x.
  void take_own() {
    h.clear(), s.clear();
    for (std::uint64_t k = 0; k < vertices * shape.heads; ++k) {
      const float* const row = &x[k / shape.heads * stride];
      const float* const head = row + k % shape.heads * shape.head_stride();
      h.insert(h.end(), head, head + shape.features);
      s.push_back(row[shape.tail() + k % shape.heads]);
    }
  }

  AttentionDropout which_dropped() const { return {{&dropout, 70000, 3}, ids.data(), ids.data()}; }

  AttentionForward forward(AttentionOut& out, bool gradient = true) const {
    const auto sized = [](std::vector<float>& values, std::size_t size) {
      values.assign(size, -7.0f);
      return values.data();
    };
    AttentionForward args{.edges = edge_rows(edges.graph, {.base = x.data(), .stride = stride}),
                          .shape = shape,
                          .dropout = which_dropped(),
                          .t = t.data(),
                          .y = sized(out.y, vertices * shape.width())};
    if (!gradient) return args;
    args.u = sized(out.u, vertices * shape.width());
    args.b = sized(out.b, vertices * shape.heads);
    args.norm = sized(out.norm, vertices * shape.heads);
    return args;
  }
  AttentionOut reference() const {
    AttentionOut out;
    apply_reference(forward(out));
    return out;
  }

  // c = <dy, y>
  std::vector<float> products(const std::vector<float>& with) const {
    std::vector<float> c(vertices * shape.heads);
    for (std::size_t k = 0; k < c.size(); ++k) {
      double sum = 0;
      for (std::size_t j = k * shape.features; j < (k + 1) * shape.features; ++j)
        sum += double{dy[j]} * double{with[j]};
      c[k] = static_cast<float>(sum);
    }
    return c;
  }
  // Makes rows of [dy | t | norm | c].
  std::vector<float> backward_rows(const AttentionOut& out, std::uint64_t padding = 0) const {
    const std::vector<float> c = products(out.y);
    std::vector<float> rows;
    const auto append = [&](const std::vector<float>& values, std::uint64_t row) {
      const std::size_t width = values.size() / vertices;
      rows.insert(rows.end(), &values[row * width], &values[row * width] + width);
    };
    for (std::uint64_t i = 0; i < vertices; ++i) {
      for (std::uint64_t k = 0; k < shape.heads; ++k) {
        const auto head =
            dy.begin() + static_cast<std::ptrdiff_t>((i * shape.heads + k) * shape.features);
        rows.insert(rows.end(), head, head + static_cast<std::ptrdiff_t>(shape.features));
        rows.insert(rows.end(), shape.head_stride() - shape.features, 1e30f);
      }
      append(t, i), append(out.norm, i), append(c, i);
      rows.insert(rows.end(), padding, 1e30f);
    }
    return rows;
  }
  AttentionBackward backward(const std::vector<float>& rows, AttentionGradient& gradient) const {
    gradient.dh.assign(vertices * shape.width(), -7.0f);
    gradient.ds.assign(vertices * shape.heads, -7.0f);
    const std::uint64_t row_stride = vertices > 0 ? rows.size() / vertices : 0;
    return {.edges = edge_rows(edges.transposed, {.base = rows.data(), .stride = row_stride}),
            .shape = shape,
            .dropout = which_dropped(),
            .h = h.data(),
            .s = s.data(),
            .h_stride = shape.width(),
            .s_stride = shape.heads,
            .dh = gradient.dh.data(),
            .ds = gradient.ds.data()};
  }
  AttentionGradient reference_gradient(const std::vector<float>& rows) const {
    AttentionGradient gradient;
    apply_reference(backward(rows, gradient));
    return gradient;
  }
};

// Compares values of rows: the more edges a row has, the more its sums may differ.
inline void expect_near(const std::vector<float>& values, const std::vector<float>& expected,
                        const Csr<std::uint32_t>& rows, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t row = i / (values.size() / rows.vertices());
    const double terms = 1 + std::sqrt(static_cast<double>(rows.degree(row)));
    ASSERT_NEAR(values[i], expected[i], tolerance * terms) << "row " << row << ", at " << i;
  }
}

}  // namespace plait::test
