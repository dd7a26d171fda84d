// y = A x across ranks: every rank gives and gets the rows of its own vertices.
//
// Strategies differ in what moves, not in what results; they sum a row's edges in the same order,
// so their results are the same bits:
//   replicate  every rank fetches all rows of all others, then sums.
//   bulk       every rank fetches each distinct remote row that it reads once, then sums.
//   get        nothing is fetched ahead: the kernel reads a remote row for each remote edge (MGG,
//              section 4.2). Needs ranks that share memory.
//
// A step in time: [scale and place own rows] barrier [fetch] [sum]; the next step begins with a
// barrier before own rows are overwritten, because peers may still be reading them.
#pragma once

#include <memory>
#include <string_view>

#include "plait/placement/graph_shards.h"
#include "plait/symmetric/rows.h"
#include "plait/world/world.h"

namespace plait {

enum class Strategy { replicate, bulk, get };

// Throws UsageError that lists the strategies.
Strategy parse_strategy(std::string_view name);
std::string_view to_string(Strategy strategy);

// Which halo the shards for a strategy must have.
HaloKind halo_for(Strategy strategy);

// diag(post) A diag(pre) x: mean is post = 1 / degree; GCN's normalisation is pre = post =
// 1 / sqrt(degree). `pre` and `post` have an entry an own row, or are null: all 1.
struct Scaling {
  const float* pre = nullptr;
  const float* post = nullptr;
  bool weighted = false;  // by the edge weights, if the graph has some; else every edge is 1
};

// What aggregation has cost this rank so far.
struct AggregateCost {
  double waiting = 0;   // s, in barriers
  double fetching = 0;  // s, moving rows between ranks
  double summing = 0;   // s, in the kernel
  std::uint64_t bytes_fetched = 0;
};

class Aggregator {
 public:
  // Collective. The shards must outlive it. `max_width` is the widest x that will come.
  Aggregator(World& world, const GraphShards& shards, Strategy strategy, std::uint64_t max_width);
  ~Aggregator();

  // Both collective. x and y: own rows x width, row major, contiguous; y is overwritten.
  void forward(const Scaling& scaling, const float* x, float* y, std::uint64_t width);
  // The gradient: x = diag(pre) A^T diag(post) y, with `scaling` as it was for forward.
  void backward(const Scaling& scaling, const float* dy, float* dx, std::uint64_t width);

  const AggregateCost& cost() const;
  std::uint64_t own() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plait
