// y = A x across ranks: every rank gives and gets the rows of its own vertices.
//
// Strategies differ in what moves and when, not in what results:
//   replicate  every rank fetches all rows of all others, then sums.
//   bulk       every rank fetches each distinct remote row that it reads once, then sums.
//   pipelined  the same rows arrive while those that are there are summed. On GPUs.
//   partial    as pipelined, but an owner sends sums of its rows to a rank that needs fewer sums
//              than rows. On GPUs.
//   get        nothing is fetched ahead: the kernel reads a remote row for each remote edge (MGG,
//              section 4.2). Needs ranks that share memory.
//   paged      remote rows come to the GPU page by page when it reads them (CUDA's managed memory):
//              the rival that MGG is compared with (section 2.2). On GPUs.
//   automatic  pipelined on GPUs, bulk on the CPU.
// On the CPU all sum a row's edges in the same order, so their results are the same bits.
//
// A step in time on the CPU: [scale and place own rows] barrier [fetch] [sum]; the next step begins
// with a barrier before own rows are overwritten, because peers may still be reading them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "plait/kernels/attention.h"
#include "plait/kernels/max_rows.h"
#include "plait/placement/graph_shards.h"
#include "plait/symmetric/rows.h"
#include "plait/world/world.h"

namespace plait {

enum class Strategy { replicate, bulk, pipelined, partial, get, paged, automatic };

// Throws UsageError that lists the strategies.
Strategy parse_strategy(std::string_view name);
std::string_view to_string(Strategy strategy);
// Throws UsageError if it runs on GPUs alone.
void require_cpu_strategy(Strategy strategy);
// Whether, on GPUs, a rank's kernels read or write other GPUs' memory: not where NCCL or the host
// moves rows.
bool needs_peer_access(Strategy strategy);
// Throws UsageError if it sums, on GPUs, in an order that depends on how the graph is cut.
void require_ordered_on_gpus(Strategy strategy);

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
  std::vector<std::uint64_t> fetched_from;  // the same by rank; empty where only the sum is known
};

class Aggregator {
 public:
  virtual ~Aggregator() = default;

  // Makes room for rows of `width`; collective. Throws DoesNotFitError, on all ranks; there is then
  // room as before, or, where the machine does not give back what was freed for the new room, none:
  // all later calls throw DoesNotFitError that says so, until a reserve() succeeds.
  virtual void reserve(std::uint64_t width) = 0;
  // Both collective. x and y: own rows x width, row major, contiguous; y is overwritten. Throws
  // UsageError for a width without room.
  virtual void forward(const Scaling& scaling, const float* x, float* y, std::uint64_t width) = 0;
  // The gradient: x = diag(pre) A^T diag(post) y, with `scaling` as it was for forward.
  virtual void backward(const Scaling& scaling, const float* dy, float* dx,
                        std::uint64_t width) = 0;

  // Operations over edges that are no plain sums. `rows`: own rows, without gaps, of the width that
  // the operation's edges read (attention.h, max_rows.h), for which there must be room; they are
  // brought to where edges read them, each once, as aggregation does it. Arrays are where forward()
  // takes them; `edges` and dropout's vertices are filled in here. The backward ones go along the
  // transposed graph. Collective. Throw UsageError where only sums can be had.
  virtual void attention(const float* rows, AttentionForward operation);
  virtual void attention_backward(const float* rows, AttentionBackward operation);
  virtual void max_rows(const float* rows, MaxForward operation);
  virtual void max_rows_backward(const float* rows, MaxBackward operation);

  // Throws LostRankError if what has been computed so far is not right because a rank is lost. To
  // be called when results have been read, before they are used, where operations are asynchronous.
  virtual void check() const {}
  virtual AggregateCost cost() const = 0;
  virtual std::uint64_t own() const = 0;
  // Edges of own rows.
  virtual EdgeOffset edges() const = 0;
  // On the host, for each own row: the sum of its edges' weights; their number.
  virtual std::span<const float> degree() const = 0;
  virtual std::vector<float> edge_counts() const = 0;
};

// On the CPU. Collective.
std::unique_ptr<Aggregator> make_aggregator(World& world, GraphShards shards, Strategy strategy,
                                            std::uint64_t max_width);

}  // namespace plait
