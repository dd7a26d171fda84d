// Strategy `get`: the kernel translates each remote edge to (rank, row) and reads the row there,
// as often as edges name it. No halo is stored; a row crosses once for every edge.
#include "plait/base/error.h"
#include "plait/base/profile.h"
#include "plait/base/setting.h"
#include "plait/exchange/strategy_run.h"
#include "plait/world/together.h"

namespace plait {
namespace {

class GetStrategy : public StrategyRun {
 public:
  explicit GetStrategy(const Shard& shard)
      : shard_(shard), edges_from_(static_cast<std::size_t>(shard.parts)) {
    for (const Slot slot : shard.slots.span())
      if (slot >= shard.own) ++edges_from_[shard.halo.owner[slot - shard.own]];
  }

  // Fetching and summing are one: the time counts as the kernel's.
  RowSource gather(std::uint64_t stride, SymmetricRows& rows, ExchangeCost& cost) override {
    count_moved(count_fetched(edges_from_, stride * sizeof(float), cost));
    RowSource source{rows.own(), stride, static_cast<Slot>(shard_.own)};
    if (rows.shared()) {
      source.peers = rows.peers();
      source.halo_owner = shard_.halo.owner.data();
      source.halo_row = shard_.halo.row.data();
    }
    return source;
  }

 private:
  const Shard& shard_;
  std::vector<std::uint64_t> edges_from_;  // by rank
};

}  // namespace

std::unique_ptr<StrategyRun> make_get_strategy(World& world, const Shard& shard) {
  require_on_all<UsageError>(world.size() == 1 || world.one_host(),
                             "strategy get reads remote rows in shared memory, but the ranks are "
                             "on several hosts; use {}",
                             setting("strategy", "bulk"));
  return std::make_unique<GetStrategy>(shard);
}

}  // namespace plait
