// The extremum over neighbours on a graph of one rank, both ways. Values are few, so that ties are
// many, and gradients are multiples of 1/8, so that sums are exact in any order.
#pragma once

#include <limits>
#include <random>
#include <vector>

#include "plait/kernels/extremum.h"
#include "tests/support/random_graph.h"

namespace plait::test {

struct ExtremumCase {
  BothWays edges;
  std::uint64_t vertices, width, stride;  // of rows of x, in floats
  std::vector<float> x;
  Extremum which = Extremum::greatest;

  ExtremumCase(BothWays graph, std::uint64_t columns, std::uint64_t padding = 0,
               bool odd_values = false)
      : edges(std::move(graph)),
        vertices(edges.graph.vertices()),
        width(columns),
        stride(columns + padding),
        x(vertices * stride) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kOdd[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
    std::mt19937 random(3);
    for (float& value : x) {
      value = static_cast<float>(static_cast<int>(random() % 17) - 8);
      if (odd_values && random() % 16 == 0) value = kOdd[random() % 3];
    }
  }

  ExtremumForward forward(std::vector<float>& y, std::vector<float>& ties) const {
    y.assign(vertices * width, -7.0f);
    ties.assign(vertices * width, -7.0f);
    return {edge_rows(edges.graph, {.base = x.data(), .stride = stride}), width, y.data(),
            ties.data(), which};
  }
  ExtremumCase of(Extremum extremum) const {
    ExtremumCase other = *this;
    other.which = extremum;
    return other;
  }
  // Makes rows of [y | gradient]: the gradient is not divided here, which keeps sums exact.
  std::vector<float> backward_rows(const std::vector<float>& y, std::uint64_t padding = 0) const {
    std::vector<float> rows;
    std::mt19937 random(4);
    for (std::uint64_t i = 0; i < vertices; ++i) {
      const std::uint64_t gap = row_stride(width) - width;
      rows.insert(rows.end(), y.begin() + static_cast<std::ptrdiff_t>(i * width),
                  y.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
      rows.insert(rows.end(), gap, 1e30f);
      for (std::uint64_t j = 0; j < width; ++j)
        rows.push_back(static_cast<float>(static_cast<int>(random() % 33) - 16) / 8);
      rows.insert(rows.end(), gap + padding, 1e30f);
    }
    return rows;
  }
  // `own`: rows of x without gaps.
  ExtremumBackward backward(const std::vector<float>& rows, const std::vector<float>& own,
                            std::vector<float>& dx) const {
    dx.assign(vertices * width, -7.0f);
    const std::uint64_t row_stride = vertices > 0 ? rows.size() / vertices : 0;
    return {edge_rows(edges.transposed, {.base = rows.data(), .stride = row_stride}), width,
            own.data(), dx.data()};
  }
  std::vector<float> own_rows() const {
    std::vector<float> own;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i % stride < width) own.push_back(x[i]);
    return own;
  }
};

// NaN counts as equal to NaN.
inline bool same_values(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float left, float right) {
    return left == right || (left != left && right != right);
  });
}

}  // namespace plait::test
