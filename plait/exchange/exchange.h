// Brings rows of other ranks to where a rank's edges read them. This room lies between kernels,
// which work on one rank's memory, and operations, which work on a graph spread over ranks.
//
// Rows are of any plain type whose size is a multiple of 4 bytes: a feature row of floats, a label
// of an analytics app, an id. Every rank gives the rows of its own vertices and works on the rows
// of all slots (placement/shard.h). Sums are made inside their strategy (aggregate/aggregate.h);
// all other operations are work on gathered rows. Operations over edges that GPUs do in passes,
// while rows arrive, come by GpuExchange::gather_in_passes() (cuda/exchange.cuh).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "plait/exchange/messages.h"
#include "plait/exchange/options.h"
#include "plait/kernels/edge_rows.h"
#include "plait/world/world.h"

namespace plait {

// The cost of exchanging rows, and of working on them, on this rank since the exchange was made.
struct ExchangeCost {
  double waiting = 0;               // s, in barriers; on GPUs in waits for signals
  double fetching = 0;              // s, moving rows between ranks
  double summing = 0;               // s, in kernels; on the CPU only
  std::uint64_t bytes_fetched = 0;  // rows; on GPUs, values of sums over ranks too
  std::vector<std::uint64_t>
      fetched_from;  // bytes of rows per rank; empty if only the sum is known
};

// The work on gathered rows.
struct GatherUse {
  // Is called once with the edges of own rows and the rows that they read. On the CPU the rows stay
  // in place until it returns. On a GPU it enqueues work on the exchange's stream, and the rows
  // stay until that work is done.
  std::function<void(const EdgeRows&)> work;
  // GPU only: the arrays that `work` writes, of any type. If a rank is lost, all their bits are
  // set: floats are NaN, signed integers -1, unsigned ones the greatest. At most 4.
  std::vector<std::span<std::byte>> results = {};
};

// A graph placed on ranks, and one strategy that moves rows along its edges. All ranks make the
// same collective calls in the same order.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Collective. Makes room for rows of `row_bytes`. Throws UsageError for sizes that are no
  // multiple of 4 bytes, and DoesNotFitError on all ranks. After a DoesNotFitError there is room as
  // before, or none if the memory freed for the new room could not be taken again: then all later
  // calls throw a DoesNotFitError that says so, until a reserve() succeeds.
  virtual void reserve(std::uint64_t row_bytes) = 0;

  // Collective. Brings the rows to where edges of the direction read them, each once (strategy
  // `get`: once per edge), and lets `use` work on them there. `rows`: own rows of `row_bytes` each,
  // without gaps, on the exchange's device. A row that `use` sees begins EdgeRows::x.stride floats
  // after the one before. Throws UsageError for rows without room or a route that gives sums only
  // (require_rows()), DoesNotFitError if a failed reserve() has left no room, and LostRankError.
  virtual void gather(Direction direction, const void* rows, std::uint64_t row_bytes,
                      const GatherUse& use) = 0;

  // Collective. Returns messages from halo slots of the direction's edges to their owners. The
  // exchange outlives them; several may be made. Throws on all ranks UsageError for a strategy that
  // keeps sums in halo slots, and DoesNotFitError.
  virtual std::unique_ptr<Messages> make_messages(Direction direction) = 0;

  // Returns the edges of own rows, without rows to read (`x` is empty).
  virtual EdgeRows edges(Direction direction) const = 0;
  // Returns the global id of each slot, in the exchange's memory; empty unless the graph was placed
  // with ShardOptions::slot_vertices.
  virtual std::span<const std::uint64_t> vertices(Direction direction) const = 0;

  // Throws LostRankError if earlier results are wrong because a rank is lost. Where work is
  // asynchronous, call it after results have been read and before they are used.
  virtual void check() const {}
  // Returns the cost so far. On GPUs it waits for the GPU if there are several ranks, and throws as
  // check() does.
  virtual ExchangeCost cost() const = 0;
};

// Collective. Places the graph on the CPU, or on each rank's current GPU, as the route says.
// `symmetric`: the graph is its own transpose. Throws UsageError for a route that is not possible
// (resolved() in plan/route.h), and errors as reserve() does.
std::unique_ptr<Exchange> make_exchange(World& world, const AnyCsr& graph, bool symmetric,
                                        const Partition& partition, const ExchangeOptions& options);
// Makes the exchange on GPUs, whatever Route::gpu says. A build without CUDA throws UsageError.
std::unique_ptr<Exchange> make_gpu_exchange(World& world, const AnyCsr& graph, bool symmetric,
                                            const Partition& partition,
                                            const ExchangeOptions& options);

// Returns the width, in floats, of rows of `row_bytes` bytes. Throws UsageError for sizes that are
// no multiple of 4 bytes.
std::uint64_t row_floats(std::uint64_t row_bytes);
// Returns the bytes of a row of `floats` floats. Throws DoesNotFitError if they overflow.
std::uint64_t bytes_of_row(std::uint64_t floats);

}  // namespace plait
