// Strategy `get`: the kernel translates each remote edge to (rank, row) and reads the row there,
// as often as edges name it. No halo is stored; a row crosses once for every edge.
#include "plait/aggregate/strategy.h"
#include "plait/base/error.h"
#include "plait/base/timer.h"

namespace plait {
namespace {

class GetStrategy : public StrategyRun {
 public:
  explicit GetStrategy(const Shard& shard) : remote_edges_(shard.remote_edges()) {}

  void run(const Product& product, SymmetricRows& rows, AggregateCost& cost) override {
    SpmmArgs args = spmm_args(product, rows.own());
    if (rows.shared()) {
      args.x.peers = rows.peers();
      args.x.halo_owner = product.shard.halo.owner.data();
      args.x.halo_row = product.shard.halo.row.data();
    }
    // Fetching and summing are one: the time counts as the kernel's.
    AddTime time(cost.summing);
    spmm(args);
    cost.bytes_fetched += remote_edges_ * product.width * sizeof(float);
  }

 private:
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
