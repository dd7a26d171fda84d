// y = A x across ranks: every rank gives and gets the rows of its own vertices.
//
// Sums are made by the strategy; all other operations over edges are work on gathered rows
// (operations.h, exchange/exchange.h). On GPUs, strategies that can have both done in passes while
// rows arrive: a row's edges are then added in an order that depends on the partition. On the CPU
// all strategies sum a row's edges in the same order, so their results are the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plait/aggregate/operations.h"
#include "plait/exchange/exchange.h"

namespace plait {

// Factors of y = diag(post) A diag(pre) x. A mean has post = 1 / degree; GCN's normalisation has
// pre = post = 1 / sqrt(degree). `pre` has one factor per row of x, `post` one per own row, in
// memory as x and y; null means all 1.
struct Scaling {
  const float* pre = nullptr;
  const float* post = nullptr;
  bool weighted = false;  // by the edge weights, if the graph has some; else every edge weighs 1
};

// Operations over the edges of one placed graph. All ranks make the same collective calls in the
// same order, from one thread each. On GPUs, operations are enqueued on the stream of
// ExchangeOptions and return before they are done; on the CPU they are done when they return.
class Aggregator {
 public:
  virtual ~Aggregator() = default;

  // Collective. Makes room for rows of `width` floats. Throws DoesNotFitError on all ranks. There
  // is then room as before, or none if the memory freed for the new room could not be taken again:
  // all later calls throw a DoesNotFitError that says so, until a reserve() succeeds.
  virtual void reserve(std::uint64_t width) = 0;
  // Collective. Computes y = diag(post) A diag(pre) x. x: inputs() x width; y: own rows x width,
  // row major, without gaps; y is overwritten and does not overlap x. Throws UsageError for a width
  // without room, LostRankError if a rank is lost.
  virtual void forward(const Scaling& scaling, const float* x, float* y, std::uint64_t width) = 0;
  // Collective. Computes the gradient of forward() with the same `scaling`: dx = diag(pre) A^T
  // diag(post) dy.
  virtual void backward(const Scaling& scaling, const float* dy, float* dx,
                        std::uint64_t width) = 0;

  // Collective. Runs an operation over edges that is no plain sum. `rows`: own rows of row_width()
  // floats, without gaps; there must be room for them. They are brought to where edges read them,
  // each once. The operation's arrays are in the same memory as the arrays of forward(); this call
  // fills in its `edges` and the vertices of its dropout. Throws UsageError if the strategy gives
  // sums only, and errors as forward().
  virtual void over_edges(const float* rows, const EdgeOperation& operation) = 0;

  // Throws LostRankError if earlier results are wrong because a rank is lost. Where operations are
  // asynchronous, call it after results have been read and before they are used.
  virtual void check() const {}
  virtual ExchangeCost cost() const = 0;
  // Returns the number of own rows.
  virtual std::uint64_t own() const = 0;
  // Returns the number of rows of x: own rows or, in a sample (sampled_edges.h), own rows and after
  // them all others that their edges read.
  virtual std::uint64_t inputs() const { return own(); }
  // Returns the number of edges of own rows.
  virtual EdgeOffset edges() const = 0;
  // On the host, for each own row: the sum of its edges' weights, and the number of its edges.
  virtual std::span<const float> degree() const = 0;
  virtual std::vector<float> edge_counts() const = 0;
};

// Collective. Places the graph on the CPU, or on each rank's current GPU, as the route says;
// pointers that the aggregator takes are to memory there. `symmetric`: the graph is its own
// transpose. Throws as make_exchange() does.
std::unique_ptr<Aggregator> make_aggregator(World& world, const AnyCsr& graph, bool symmetric,
                                            const Partition& partition,
                                            const ExchangeOptions& options);
// Collective. Makes an aggregator, on either device, that takes pointers to the host's memory
// (on_host_memory()).
std::unique_ptr<Aggregator> make_aggregator_for_host_arrays(World& world, const AnyCsr& graph,
                                                            bool symmetric,
                                                            const Partition& partition,
                                                            const ExchangeOptions& options);
// Collective. Makes an aggregator on the CPU for shards that were made with the strategy's halo
// (StrategyTraits::cpu). Rows cross as fp32. Throws as CpuExchange does.
std::unique_ptr<Aggregator> make_aggregator(World& world, GraphShards shards, Strategy strategy,
                                            std::uint64_t max_width);

}  // namespace plait
