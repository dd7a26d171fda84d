// Attention as it is defined, and its gradient by the chain rule, edge by edge, in double
// precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plait/kernels/attention.h"

namespace plait {
namespace {

// leaky_relu and its derivative.
struct Score {
  double value, slope;
  Score(double argument, const AttentionShape& shape)
      : value(argument > 0 ? argument : argument * double{shape.slope}),
        slope(argument > 0 ? 1.0 : double{shape.slope}) {}
};

double dropout_factor(const AttentionDropout& dropout, std::uint64_t target, std::uint64_t source,
                      std::uint64_t head) {
  const auto& [which, epoch, layer, epoch_at] = dropout.step;
  const auto k = static_cast<std::uint32_t>(head);
  return which->factor(which->edge_numbers(target, source, epoch, layer, k)[k % 4]);
}

// Computes head k of row i.
void forward_head(const AttentionForward& args, std::uint64_t i, std::uint64_t k) {
  const AttentionShape& shape = args.shape;
  const EdgeOffset begin = args.edges.begin[i], edges = args.edges.end[i] - begin;
  const Slot* columns = args.edges.columns + begin;
  std::vector<Score> scores;
  double greatest = -std::numeric_limits<double>::infinity(), total = 0, b = 0;
  for (EdgeOffset e = 0; e < edges; ++e) {
    const double s = double{args.edges.x.row(columns[e])[shape.tail() + k]};
    scores.emplace_back(s + double{args.t[i * shape.heads + k]}, shape);
    greatest = std::max(greatest, scores[e].value);
  }
  for (const Score& score : scores) total += std::exp(score.value - greatest);

  std::vector<double> y(shape.features), u(shape.features);
  for (EdgeOffset e = 0; e < edges; ++e) {
    const double a = std::exp(scores[e].value - greatest) / total, r = scores[e].slope;
    const double m = args.dropout.step.active()
                         ? dropout_factor(args.dropout, args.dropout.row_vertex[i],
                                          args.dropout.slot_vertex[columns[e]], k)
                         : 1;
    const float* h = args.edges.x.row(columns[e]) + k * shape.head_stride();
    for (std::uint64_t j = 0; j < shape.features; ++j) {
      y[j] += m * a * double{h[j]};
      u[j] += m * a * r * double{h[j]};
    }
    b += a * r;
  }
  const std::uint64_t first = i * shape.width() + k * shape.features;
  for (std::uint64_t j = 0; j < shape.features; ++j) {
    args.y[first + j] = static_cast<float>(y[j]);
    if (args.u) args.u[first + j] = static_cast<float>(u[j]);
  }
  if (!args.u) return;
  args.b[i * shape.heads + k] = static_cast<float>(b);
  args.norm[i * shape.heads + k] =
      edges == 0 ? 0.0f : static_cast<float>(greatest + std::log(total));
}

void backward_head(const AttentionBackward& args, std::uint64_t j, std::uint64_t k) {
  const AttentionShape& shape = args.shape;
  const std::uint64_t heads = shape.heads, features = shape.features;
  const float* h = args.h + j * args.h_stride + k * features;
  std::vector<double> dh(features);
  double ds = 0;
  for (EdgeOffset e = args.edges.begin[j]; e < args.edges.end[j]; ++e) {
    const Slot slot = args.edges.columns[e];
    const float* row = args.edges.x.row(slot);
    const float* dy = row + k * shape.head_stride();
    const float* tail = row + shape.tail() + k;  // t, norm and c, `heads` apart
    const Score score(double{args.s[j * args.s_stride + k]} + double{tail[0]}, shape);
    const double a = std::exp(score.value - double{tail[heads]});
    const double m = args.dropout.step.active()
                         ? dropout_factor(args.dropout, args.dropout.slot_vertex[slot],
                                          args.dropout.row_vertex[j], k)
                         : 1;
    double product = 0;
    for (std::uint64_t i = 0; i < features; ++i) {
      dh[i] += m * a * double{dy[i]};
      product += double{dy[i]} * double{h[i]};
    }
    ds += a * score.slope * (m * product - double{tail[2 * heads]});
  }
  for (std::uint64_t i = 0; i < features; ++i)
    args.dh[j * shape.width() + k * features + i] = static_cast<float>(dh[i]);
  args.ds[j * heads + k] = static_cast<float>(ds);
}

}  // namespace

void apply_reference(const AttentionForward& args) {
  for (std::uint64_t i = 0; i < args.edges.begin.size(); ++i)
    for (std::uint64_t k = 0; k < args.shape.heads; ++k) forward_head(args, i, k);
}

void apply_reference(const AttentionBackward& args) {
  for (std::uint64_t j = 0; j < args.edges.begin.size(); ++j)
    for (std::uint64_t k = 0; k < args.shape.heads; ++k) backward_head(args, j, k);
}

}  // namespace plait
