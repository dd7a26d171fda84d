#include "plait/aggregate/sampled_edges.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "plait/base/parallel.h"
#include "plait/base/timer.h"
#include "plait/kernels/spmm.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

// Edges by the rows of one of their ends. The columns are rows of the other.
struct Rows {
  std::vector<EdgeOffset> offsets;
  std::vector<Slot> columns;
  std::vector<float> weights;

  std::uint64_t rows() const { return offsets.size() - 1; }
  std::span<const EdgeOffset> begin() const { return std::span(offsets).first(rows()); }
  std::span<const EdgeOffset> end() const { return std::span(offsets).last(rows()); }
};

// Returns the edges by their columns, below `count`. The edges of a column keep their order.
Rows turned_round(const Rows& of, std::uint64_t count) {
  Rows turned{std::vector<EdgeOffset>(count + 1), std::vector<Slot>(of.columns.size()),
              std::vector<float>(of.weights.size())};
  for (const Slot column : of.columns) ++turned.offsets[column + std::uint64_t{1}];
  std::inclusive_scan(turned.offsets.begin(), turned.offsets.end(), turned.offsets.begin());
  std::vector<EdgeOffset> next(turned.offsets.begin(), turned.offsets.end() - 1);
  for (std::uint64_t i = 0; i < of.rows(); ++i)
    for (EdgeOffset e = of.offsets[i]; e < of.offsets[i + 1]; ++e) {
      const EdgeOffset at = next[of.columns[e]]++;
      turned.columns[at] = static_cast<Slot>(i);
      if (!of.weights.empty()) turned.weights[at] = of.weights[e];
    }
  return turned;
}

class SampleAggregator : public Aggregator {
 public:
  explicit SampleAggregator(SampledEdges edges)
      : inputs_(edges.inputs),
        vertices_(std::move(edges.vertices)),
        along_{std::move(edges.offsets), std::move(edges.sources), std::move(edges.weights)},
        degree_(own()) {
    for (std::uint64_t i = 0; i < own(); ++i) {
      const auto first = along_.offsets[i], last = along_.offsets[i + 1];
      degree_[i] = along_.weights.empty() ? static_cast<float>(last - first)
                                          : std::accumulate(along_.weights.data() + first,
                                                            along_.weights.data() + last, 0.0f);
    }
  }

  void reserve(std::uint64_t) override {}
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    sum(Direction::along, {x, s.pre, width}, s.post, s.weighted, y);
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    sum(Direction::against, {dy, s.post, width}, s.pre, s.weighted, dx);
  }
  void over_edges(const float* given, const EdgeOperation& any) override {
    const Phase phase("aggregate");
    const auto run = [&](auto operation) {
      const Rows& edges = of(decltype(operation)::kDirection);
      operation.edges = {edges.begin(), edges.end(), edges.columns.data(),
                         source(decltype(operation)::kDirection, given, operation.row_width())};
      set_vertices(operation, vertices_);
      apply(operation);
    };
    AddTime time(cost_.summing);
    std::visit(run, any);
  }

  ExchangeCost cost() const override { return cost_; }
  std::uint64_t own() const override { return along_.rows(); }
  std::uint64_t inputs() const override { return inputs_; }
  EdgeOffset edges() const override { return along_.columns.size(); }
  std::span<const float> degree() const override { return degree_; }
  std::vector<float> edge_counts() const override {
    std::vector<float> counts(own());
    for (std::uint64_t i = 0; i < own(); ++i)
      counts[i] = static_cast<float>(along_.offsets[i + 1] - along_.offsets[i]);
    return counts;
  }

 private:
  struct Scaled {
    const float* rows;
    const float* factors;  // one per row, or null
    std::uint64_t width;
  };

  // Returns the edges in a direction. They are turned round for the first gradient.
  const Rows& of(Direction direction) {
    if (direction == Direction::along) return along_;
    if (!against_) against_ = turned_round(along_, inputs_);
    return *against_;
  }

  // Returns the rows that edges of the direction read.
  RowSource source(Direction direction, const float* rows, std::uint64_t width) const {
    const std::uint64_t count = direction == Direction::along ? inputs_ : own();
    return {.base = rows, .stride = width, .own = static_cast<Slot>(count)};
  }

  void sum(Direction direction, const Scaled& x, const float* post, bool weighted, float* y) {
    const Phase phase("aggregate");
    AddTime time(cost_.summing);
    const Rows& edges = of(direction);
    RowSource rows = source(direction, x.rows, x.width);
    if (x.factors != nullptr) rows.base = scale(x, rows.own);
    spmm({.begin = edges.begin(),
          .end = edges.end(),
          .columns = edges.columns.data(),
          .weights = weighted && !edges.weights.empty() ? edges.weights.data() : nullptr,
          .x = rows,
          .width = x.width,
          .y = y,
          .y_stride = x.width,
          .row_scale = post});
  }

  // Returns the rows times their factors, until the next call.
  const float* scale(const Scaled& x, std::uint64_t rows) {
    constexpr std::size_t kGrain = 256;
    if (scaled_.size() < rows * x.width) scaled_ = Buffer<float>(rows * x.width);
    parallel_blocks(rows, kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t c = 0; c < x.width; ++c)
          scaled_[i * x.width + c] = x.rows[i * x.width + c] * x.factors[i];
    });
    return scaled_.data();
  }

  const std::uint64_t inputs_;
  const std::vector<std::uint64_t> vertices_;
  const Rows along_;
  std::optional<Rows> against_;
  std::vector<float> degree_;
  Buffer<float> scaled_;
  ExchangeCost cost_;
};

}  // namespace

std::unique_ptr<Aggregator> make_sample_aggregator(SampledEdges edges) {
  return std::make_unique<SampleAggregator>(std::move(edges));
}

}  // namespace plait
