// Random walks (sample/walks.h) whose starts ranks share: each rank has the rows of the whole
// graph, and makes a run of consecutive walks of every block. A walk depends on the key and its
// number alone, so that the answer is the same on any number of ranks and on either device.
//
// Steps follow edges from u to v, as paths of other apps do, and vertices are known by their
// numbers. A walk's number is its start's place times `walks`, and its own among them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/sample/walks.h"
#include "plait/table/sharded/cuda/gpu_array.h"
#include "plait/world/world.h"

namespace plait {

class GpuRandomWalks;

// The walks that are asked for.
struct WalkQuestion {
  WalkSettings settings;
  std::optional<std::vector<std::uint64_t>> starts;  // numbers; none: every vertex once
  std::uint64_t vertices = 0;                        // of the graph
  std::uint64_t walks = 1;                           // from each start
  std::uint64_t key = 0;
  std::uint64_t block_bytes = std::uint64_t{64} << 20;  // of walks that a rank makes at once

  std::uint64_t start_count() const { return starts ? starts->size() : vertices; }
  std::uint64_t count() const { return start_count() * walks; }
  std::uint64_t width() const { return settings.length + 1; }
  // Returns the start of the walk with this number.
  std::uint64_t start(std::uint64_t walk) const {
    return starts ? (*starts)[walk / walks] : walk / walks;
  }
};

// Sums over all walks.
struct WalkTotals {
  std::uint64_t steps = 0;    // from vertices that an edge leaves
  std::uint64_t stopped = 0;  // walks that had to take a step from a vertex that no edge leaves

  friend bool operator==(const WalkTotals&, const WalkTotals&) = default;
};

// Takes the next walks: length + 1 vertices each.
using TakeWalks = std::function<void(std::span<const std::int64_t> walks)>;

// On GPUs, where the rows of the graph stand.
struct WalkPlace {
  bool gpu = false;
  // Whether each GPU has a part of the rows and reads those of the others in place, or a copy of
  // all. None: a copy, if there is room for it on each and the GPUs can share at all.
  std::optional<bool> shared = {};
};

// The rows of a graph, placed for walks.
class SpreadWalks {
 public:
  // Collective. `weighted`: edges are drawn in proportion to their weights, which are finite and
  // >= 0. Throws DoesNotFitError and UsageError on all ranks.
  SpreadWalks(World& world, const Dataset& dataset, bool weighted, WalkPlace place);
  ~SpreadWalks();

  // Tells whether GPUs share the rows.
  bool shared() const { return shared_; }

  // Collective. Throws UsageError for settings out of range, and DoesNotFitError if there is no
  // memory for a block, on all ranks.
  void check(const WalkQuestion& question) const;
  // Collective. Makes all walks, block by block. `take`, which is given on all ranks or on none, is
  // called on rank 0 with all walks, in their order; what it throws, all ranks throw. Returns the
  // seconds that the walks took, without take().
  double run(const WalkQuestion& question, const TakeWalks& take);
  // The sums of the last run, of all ranks.
  const WalkTotals& totals() const { return totals_; }

 private:
  void place_rows(std::optional<bool> shared);
  RawVector<std::uint64_t> walks_of(const WalkQuestion& question, std::uint64_t first,
                                    std::uint64_t count) const;
  WalkTotals totals_of(const WalkQuestion& question, std::span<const std::uint64_t> walks) const;

  World& world_;
  std::unique_ptr<RandomWalks> walks_;             // on rows by number
  std::vector<std::unique_ptr<GpuArray>> arrays_;  // of the rows on GPUs
  std::unique_ptr<GpuRandomWalks> on_gpu_;
  bool shared_ = false;
  WalkTotals totals_;
};

// Returns the key of the walks that plait.random_walk makes after torch.manual_seed(seed): the
// first number below 2^63 - 1 that torch's generator draws. The seed is below 2^32.
std::uint64_t walk_key(std::uint64_t seed);

}  // namespace plait
