// Attention of pairs of rows on a graph of one rank, with all that it reads, both ways.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "plait/kernels/pair_attention.h"
#include "tests/support/attention_case.h"

namespace plait::test {

inline constexpr PairShape kPairShapes[] = {
    {.score = PairScore::product, .own_values = true},
    {.score = PairScore::product},
    {.score = PairScore::leaky},
    {.score = PairScore::leaky, .own_values = true, .slope = 0.5f}};

// Returns the shape with as many heads, and features of each.
inline PairShape pair_shape(PairShape shape, std::uint64_t heads, std::uint64_t features) {
  shape.heads = heads, shape.features = features;
  return shape;
}

struct PairOut {
  std::vector<float> y, norm;
};

struct PairGradient {
  std::vector<float> dq, df, dp, dv;
};

// Ids of vertices are far apart, so that the whole of an id is seen to count.
struct PairCase {
  BothWays edges;
  PairShape shape;
  Dropout dropout;
  std::uint64_t vertices, stride;  // of rows of x, in floats
  std::vector<float> q, f, p, v, dy;
  std::vector<float> x;  // [p] or [p | v]
  std::vector<std::uint64_t> ids;

  struct Options {
    PairShape shape;
    float p = 0;
    std::uint64_t padding = 0;  // floats behind each row of x
    float scores = 1;           // q is in -scores .. scores
    unsigned seed = 1;
  };

  PairCase(BothWays graph, const Options& options)
      : edges(std::move(graph)),
        shape(options.shape),
        dropout(options.seed, options.p),
        vertices(edges.graph.vertices()),
        stride(shape.forward_width() + options.padding),
        q(vertices * shape.width()),
        f(shape.width()),
        p(q.size()),
        v(q.size()),
        dy(q.size()),
        ids(vertices) {
    std::mt19937 random(options.seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::vector<float>* values : {&q, &f, &p, &v, &dy})
      for (float& value : *values) value = uniform(random);
    for (float& value : q) value *= options.scores;
    if (!shape.own_values) v = p;
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = (i % 3 << 40) + i * 7;
    lay_rows();
  }

  // Makes x of p and v; must be called after a test has written them. Padding is never to be read.
  void lay_rows() {
    x.assign(vertices * stride, 1e30f);
    for (std::uint64_t i = 0; i < vertices; ++i) {
      put_heads(x, i * stride, p, i);
      if (shape.own_values) put_heads(x, i * stride + shape.values(), v, i);
    }
  }

  AttentionDropout which_dropped() const { return {{&dropout, 70000, 3}, ids.data(), ids.data()}; }

  PairForward forward(PairOut& out, bool gradient = true) const {
    PairForward args{.edges = edge_rows(edges.graph, {.base = x.data(), .stride = stride}),
                     .shape = shape,
                     .dropout = which_dropped(),
                     .q = q.data(),
                     .f = factors(),
                     .y = sized(out.y, q.size())};
    if (gradient) args.norm = sized(out.norm, vertices * shape.heads);
    return args;
  }
  PairOut reference() const {
    PairOut out;
    apply_reference(forward(out));
    return out;
  }
  // c = <dy, y>
  std::vector<float> products(const PairOut& out) const {
    std::vector<float> c(vertices * shape.heads);
    for (std::size_t k = 0; k < c.size(); ++k) {
      double sum = 0;
      for (std::size_t j = k * shape.features; j < (k + 1) * shape.features; ++j)
        sum += double{dy[j]} * double{out.y[j]};
      c[k] = static_cast<float>(sum);
    }
    return c;
  }
  PairOwnGradient own_gradient(const PairOut& out, const std::vector<float>& c,
                               PairGradient& gradient) const {
    return {.edges = edge_rows(edges.graph, {.base = x.data(), .stride = stride}),
            .shape = shape,
            .dropout = which_dropped(),
            .q = q.data(),
            .f = factors(),
            .dy = dy.data(),
            .norm = out.norm.data(),
            .c = c.data(),
            .dq = sized(gradient.dq, q.size()),
            .df = shape.score == PairScore::leaky ? sized(gradient.df, q.size()) : nullptr};
  }
  // Makes rows of [q | dy | norm | c].
  std::vector<float> backward_rows(const PairOut& out, const std::vector<float>& c,
                                   std::uint64_t padding = 0) const {
    const std::uint64_t width = shape.backward_width() + padding;
    std::vector<float> rows(vertices * width, 1e30f);
    for (std::uint64_t i = 0; i < vertices; ++i) {
      put_heads(rows, i * width, q, i);
      put_heads(rows, i * width + shape.part(), dy, i);
      put(rows, i * width + 2 * shape.part(), out.norm, i);
      put(rows, i * width + 2 * shape.part() + shape.heads, c, i);
    }
    return rows;
  }
  PairBackward backward(const std::vector<float>& rows, PairGradient& gradient) const {
    const std::uint64_t row_stride = vertices > 0 ? rows.size() / vertices : 0;
    return {.edges = edge_rows(edges.transposed, {.base = rows.data(), .stride = row_stride}),
            .shape = shape,
            .dropout = which_dropped(),
            .p = p.data(),
            .v = v.data(),
            .f = factors(),
            .dp = sized(gradient.dp, q.size()),
            .dv = sized(gradient.dv, q.size())};
  }
  PairGradient reference_gradient() const {
    PairGradient gradient;
    const PairOut out = reference();
    const std::vector<float> c = products(out);
    apply_reference(own_gradient(out, c, gradient));
    apply_reference(backward(backward_rows(out, c), gradient));
    return gradient;
  }

 private:
  const float* factors() const { return shape.score == PairScore::leaky ? f.data() : nullptr; }
  static float* sized(std::vector<float>& values, std::size_t size) {
    values.assign(size, -7.0f);
    return values.data();
  }
  // Copies row i of `from` to place `at`, heads with gaps between them.
  void put_heads(std::vector<float>& to, std::uint64_t at, const std::vector<float>& from,
                 std::uint64_t i) const {
    for (std::uint64_t k = 0; k < shape.heads; ++k)
      std::copy_n(&from[i * shape.width() + k * shape.features], shape.features,
                  &to[at + k * shape.head_stride()]);
  }
  // The same without gaps, of rows of any width.
  void put(std::vector<float>& to, std::uint64_t at, const std::vector<float>& from,
           std::uint64_t i) const {
    const std::size_t width = from.size() / vertices;
    std::copy_n(&from[i * width], width, &to[at]);
  }
};

// Scores of the first ten vertices, as sources, are -infinity.
inline PairCase masked_pair_case() {
  PairCase c(random_both_ways(30, 400, 6), {.shape = pair_shape(kPairShapes[3], 2, 4)});
  for (float& factor : c.f) factor = std::abs(factor) + 0.1f;
  std::fill_n(c.p.begin(), 10 * c.shape.width(), -std::numeric_limits<float>::infinity());
  c.lay_rows();
  return c;
}

// The only score of vertex 0 is -infinity.
inline PairCase wholly_masked_pair_case() {
  PairCase c(BothWays(2, {{1, 0, 1}}), {.shape = pair_shape(kPairShapes[3], 1, 1)});
  c.f = {1}, c.p = {0, -std::numeric_limits<float>::infinity()};
  c.lay_rows();
  return c;
}

}  // namespace plait::test
