#include "plait/plan/get_resources.h"

#include <algorithm>
#include <array>

#include "plait/base/error.h"
#include "plait/base/setting.h"

namespace plait {
namespace {

constexpr std::uint64_t kLanes = 32;  // of a warp

std::uint64_t shares(std::uint64_t all, std::uint64_t each) { return (all + each - 1) / each; }

// One resource: what a block takes, and what a block, and all blocks together, can have.
struct Resource {
  const char* name;
  std::uint64_t taken, of_block, of_all;
};

std::array<Resource, 3> resources(const GetBlock& b, const GpuLimits& l) {
  return {{{"bytes of shared memory", b.shared, l.shared_of_block, l.shared - l.shared_kept},
           {"registers", b.registers, l.registers, l.registers},
           {"warps", b.warps, l.warps, l.warps}}};
}

}  // namespace

GetBlock get_block(const GetTuning& tuning, std::uint64_t piece) {
  const bool fetched = tuning.asynchronous || tuning.read_by != ReadBy::warp ||
                       tuning.read_with == ReadWith::nvshmem;
  const std::uint64_t stages = fetched ? kGetStages * kGetBatch * kLanes * piece : 0;
  const std::uint64_t table = tuning.read_by == ReadBy::block ? kLanes * kGetRowToCopy : 0;
  return {.shared = tuning.wpb * (stages + table),
          .registers = tuning.wpb * kLanes * kGetRegisters,
          .warps = tuning.wpb};
}

std::uint64_t blocks_at_once(const GetBlock& block, const GpuLimits& limits) {
  for (const Resource& r : resources(block, limits))
    if (r.taken > std::min(r.of_block, r.of_all)) return 0;
  return std::min({limits.blocks, limits.shared / (block.shared + limits.shared_kept),
                   limits.registers / block.registers, limits.warps / block.warps});
}

void require_runs(const GetBlock& block, const GpuLimits& limits) {
  for (const Resource& r : resources(block, limits))
    require<DoesNotFitError>(
        r.taken <= std::min(r.of_block, r.of_all),
        "{} warps per block take {} {}, of which this GPU has {}; take a smaller {}", block.warps,
        r.taken, r.name, std::min(r.of_block, r.of_all), setting("wpb"));
}

GetGrid get_grid(const GetTuning& tuning, std::uint64_t local, std::uint64_t remote) {
  const std::uint64_t near = shares(local, tuning.dist), far = shares(remote, tuning.dist);
  const std::uint64_t both = std::max(near, far);
  const bool mixed = tuning.interleave;
  GetGrid grid{.warps = mixed ? both : near + far,
               .local_warps = mixed ? both : near,
               .first_remote = mixed ? 0 : near,
               .remote_warps = mixed ? both : far};
  grid.blocks = shares(grid.warps, tuning.wpb);
  require<DoesNotFitError>(grid.blocks <= kMostGridBlocks,
                           "{} neighbour groups take {} blocks, but a grid has {} at most; take a "
                           "larger {} or {}",
                           local + remote, grid.blocks, kMostGridBlocks, setting("dist"),
                           setting("wpb"));
  return grid;
}

}  // namespace plait
