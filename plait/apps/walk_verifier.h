// Checks random walks by the graph as it was read, in plain loops.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "plait/apps/spread_walks.h"
#include "plait/graph/dataset.h"

namespace plait {

class WalkVerifier {
 public:
  // `weighted`: edges that weigh 0 lead nowhere. The question outlives this.
  WalkVerifier(const Dataset& dataset, bool weighted, const WalkQuestion& question);
  ~WalkVerifier();

  // Throws MismatchError unless these walks, the next ones, begin at their starts, and each step
  // follows an edge, stays where no edge leads on, or leads back to the start if there are
  // restarts.
  void check(std::span<const std::int64_t> walks);
  // Throws MismatchError unless all walks have been checked and have these sums.
  void check(const WalkTotals& totals) const;

 private:
  struct Graph;
  void check_walk(std::uint64_t number, std::span<const std::int64_t> walk);

  const WalkQuestion& question_;
  std::unique_ptr<const Graph> graph_;
  std::uint64_t checked_ = 0;
  WalkTotals totals_;
};

}  // namespace plait
