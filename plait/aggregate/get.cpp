// Strategy `get`: the kernel translates each remote edge to (rank, row) and reads the row there,
// as often as edges name it. No halo is stored; a row crosses once for every edge.
#include "plait/aggregate/strategy.h"
#include "plait/base/error.h"

namespace plait {
namespace {

class GetStrategy : public StrategyRun {
 public:
  explicit GetStrategy(const Shard& shard) : shard_(shard), remote_edges_(shard.remote_edges()) {}

  // Fetching and summing are one: the time counts as the kernel's.
  RowSource gather(std::uint64_t width, SymmetricRows& rows, AggregateCost& cost) override {
    cost.bytes_fetched += remote_edges_ * width * sizeof(float);
    RowSource source{rows.own(), width, static_cast<Slot>(shard_.own)};
    if (rows.shared()) {
      source.peers = rows.peers();
      source.halo_owner = shard_.halo.owner.data();
      source.halo_row = shard_.halo.row.data();
    }
    return source;
  }

 private:
  const Shard& shard_;
  EdgeOffset remote_edges_;
};

}  // namespace

std::unique_ptr<StrategyRun> make_get_strategy(World& world, const Shard& shard) {
  require<UsageError>(world.size() == 1 || world.one_host(),
                      "strategy get reads remote rows in shared memory, but the ranks are on "
                      "several hosts; use --strategy bulk");
  return std::make_unique<GetStrategy>(shard);
}

}  // namespace plait
