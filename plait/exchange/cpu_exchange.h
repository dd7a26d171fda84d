// Exchange between processes on CPUs.
//
// A step in time: [scale and place own rows] barrier [fetch] [work]. The next step begins with a
// barrier before own rows are overwritten, because peers may still be reading them. reserve() ends
// in such a barrier, so that a step that comes next begins with none.
//
// At each of these barriers ranks compare the calls that they make, by one word each in the memory
// that they share. All ranks throw the same UsageError if the words differ. A rank that fails
// before the second barrier still comes to it, and all ranks throw its error; what fails later
// makes no rank wait. Where rows travel as messages, ranks compare calls in reserve() alone, and a
// rank that fails before its messages have gone tells the others (together()). Ranks that wait on
// the memory of different graphs are told apart by the watch (World::begin_operation).
#pragma once

#include <memory>
#include <optional>

#include "plait/exchange/exchange.h"
#include "plait/exchange/strategy_run.h"

namespace plait {

// The exchange of one rank on the CPU. It owns the shards; all its memory is the host's.
class CpuExchange : public Exchange {
 public:
  // Collective. Of the route, the strategy and the wire type count. The shards must have the
  // strategy's halo (StrategyTraits::cpu). `max_width`: floats of the widest row that there is room
  // for at first. Throws UsageError for a strategy that needs GPUs, and errors as reserve() does.
  CpuExchange(World& world, GraphShards shards, const Route& route, std::uint64_t max_width);

  void reserve(std::uint64_t row_bytes) override;
  void gather(Direction direction, const void* rows, std::uint64_t row_bytes,
              const GatherUse& use) override;
  std::unique_ptr<Messages> make_messages(Direction direction) override;
  EdgeRows edges(Direction direction) const override;
  std::span<const std::uint64_t> vertices(Direction direction) const override {
    return shard(direction).vertices;
  }
  ExchangeCost cost() const override { return cost_; }

  // Collective. As gather(), for rows of floats to be summed, which are scaled, and then rounded to
  // the wire type if they cross. Returns where the rows of all slots stand until the next call.
  RowSource bring(Direction direction, const OwnRows& rows);

  // The shards, and the one that edges of a direction belong to.
  const GraphShards& shards() const { return shards_; }
  const Shard& shard(Direction direction) const {
    return direction == Direction::along ? shards_.forward : shards_.backward();
  }
  // The seconds of ExchangeCost::summing, to which callers add the time that their work takes.
  double& working() { return cost_.summing; }

 private:
  std::unique_ptr<StrategyRun> make(const Shard& shard);
  void make_rows(std::uint64_t width);
  // The word in which ranks compare calls.
  struct Meeting;
  // Throws on all ranks if the words differ, or the failure of a rank.
  void meet(Meeting mine, const std::optional<Error>& failure = {});
  void place_rows(const OwnRows& rows, const Shard& shard);

  World& world_;
  const GraphShards shards_;
  const Route route_;
  const bool get_;
  std::uint64_t width_ = 0;  // floats of the widest row that there is room for
  SymmetricRows rows_;
  bool rows_are_free_ = false;  // no peer reads rows of the last step
  std::uint64_t calls_ = 0;     // that ranks meet in
  std::unique_ptr<StrategyRun> forward_, backward_;
  ExchangeCost cost_;
};

// Collective. Returns this rank's shards with the halo and edge order of the options' route, which
// must be one of the CPU. If one rank cannot cut its shards, all throw (on_all_or_none()).
GraphShards cpu_shards(World& world, const AnyCsr& graph, bool symmetric,
                       const Partition& partition, const ExchangeOptions& options);

}  // namespace plait
