#include "plait/aggregate/block_aggregator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/exchange/strategy_run.h"
#include "plait/kernels/spmm.h"

namespace plait {
namespace {

// The part that both acts share: there is no gradient, and no peer.
class BlockAggregator : public Aggregator {
 public:
  void reserve(std::uint64_t) override {}
  void backward(const Scaling&, const float*, float*, std::uint64_t) override {
    require_forward(Direction::against);
  }
  ExchangeCost cost() const override { return {}; }

 protected:
  static void require_forward(Direction direction) {
    require<UsageError>(direction == Direction::along, "blocks of a graph have no gradient");
  }
};

class SendingAggregator : public BlockAggregator {
 public:
  SendingAggregator(const BlockOfGraph& block, RowSink sink)
      : block_(block), sink_(std::move(sink)) {}

  void forward(const Scaling& scaling, const float* x, float*, std::uint64_t width) override {
    if (scaling.pre == nullptr) send(x, width);
    Buffer<float> scaled(own() * width);
    scale_rows({x, scaling.pre, width}, own(), scaled.data(), width);
    send(scaled.data(), width);
  }
  void over_edges(const float* rows, const EdgeOperation& any) override {
    const auto run = [&](const auto& operation) {
      require_forward(operation.kDirection);
      send(rows, operation.row_width());
    };
    std::visit(run, any);
  }
  std::uint64_t own() const override { return block_.range.end - block_.range.begin; }
  EdgeOffset edges() const override {
    const std::vector<float> counts = edge_counts();
    EdgeOffset sum = 0;
    for (const float count : counts) sum += static_cast<EdgeOffset>(count);
    return sum;
  }
  // Degrees are computed when they are first asked for: most layers do not ask, and need no edges
  // then.
  std::span<const float> degree() const override {
    if (degree_.empty()) degree_ = degrees_of(*block_.graph, block_.range, block_.one_loop_each);
    return degree_;
  }
  std::vector<float> edge_counts() const override {
    require<UsageError>(!block_.one_loop_each, "edges are not counted where loops are added");
    std::vector<float> counts(own());
    std::visit(
        [&](const auto& graph) {
          for (std::uint64_t i = 0; i < counts.size(); ++i)
            counts[i] = static_cast<float>(graph.degree(block_.range.begin + i));
        },
        *block_.graph);
    return counts;
  }

 private:
  [[noreturn]] void send(const float* rows, std::uint64_t width) {
    sink_(rows, width);
    throw RowsSent();
  }

  BlockOfGraph block_;
  RowSink sink_;
  mutable std::vector<float> degree_;
};

class ReceivingAggregator : public BlockAggregator {
 public:
  ReceivingAggregator(RowBlock block, const float* stored)
      : block_(std::move(block)), stored_(stored) {}

  void forward(const Scaling& scaling, const float*, float* y, std::uint64_t width) override {
    const Gathered x = gather(width);
    spmm({.begin = begin(),
          .end = end(),
          .columns = block_.slots.data(),
          .weights = scaling.weighted && !block_.weights.empty() ? block_.weights.data() : nullptr,
          .x = x.source,
          .width = width,
          .y = y,
          .y_stride = width,
          .row_scale = scaling.post});
  }
  void over_edges(const float*, const EdgeOperation& any) override {
    const auto run = [&](auto operation) {
      require_forward(decltype(operation)::kDirection);
      const Gathered x = gather(operation.row_width());
      operation.edges = {begin(), end(), block_.slots.data(), x.source};
      set_vertices(operation, {});  // throws where dropout draws by them
      apply(operation);
    };
    std::visit(run, any);
  }
  std::uint64_t own() const override { return block_.rows(); }
  EdgeOffset edges() const override { return block_.edges(); }
  std::span<const float> degree() const override { return block_.degree; }
  std::vector<float> edge_counts() const override {
    std::vector<float> counts(own());
    std::ranges::transform(end(), begin(), counts.begin(), [](EdgeOffset end, EdgeOffset begin) {
      return static_cast<float>(end - begin);
    });
    return counts;
  }

 private:
  std::span<const EdgeOffset> begin() const { return block_.offsets.span().first(own()); }
  std::span<const EdgeOffset> end() const { return block_.offsets.span().subspan(1); }

  struct Gathered {
    Buffer<float> rows;
    RowSource source;
  };
  // Gathers each distinct row once, in ascending order, so that a file is read from its beginning
  // to its end. If one row of the graph reads too many rows for that, they are read where they are.
  Gathered gather(std::uint64_t width) const {
    const auto& sources = block_.sources;
    Gathered x{.rows = Buffer<float>(sources.size() * width), .source = {stored_, width}};
    if (sources.empty()) return x;
    parallel_blocks(sources.size(), std::size_t{1} << 10, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i)
        std::memcpy(x.rows.data() + i * width, stored_ + sources[i] * width, width * sizeof(float));
    });
    x.source.base = x.rows.data();
    return x;
  }

  const RowBlock block_;
  const float* stored_;
};

}  // namespace

std::unique_ptr<Aggregator> make_sending_aggregator(const BlockOfGraph& block, RowSink sink) {
  return std::make_unique<SendingAggregator>(block, std::move(sink));
}

std::unique_ptr<Aggregator> make_receiving_aggregator(RowBlock block, const float* stored) {
  return std::make_unique<ReceivingAggregator>(std::move(block), stored);
}

}  // namespace plait
