#include "cli/commands/get_explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "plait/base/row_stride.h"
#include "plait/plan/get_resources.h"
#include "plait/plan/published_models.h"

namespace plait::cli {
namespace {

GroupCounts most_groups(const AnyCsr& graph, const Partition& partition, const GetTuning& tuning) {
  GroupCounts most;
  for (int rank = 0; rank < partition.parts(); ++rank) {
    const GroupCounts counts = count_groups(graph, partition, rank, tuning);
    if (counts.local + counts.remote > most.local + most.remote) most = counts;
  }
  return most;
}

std::string settings_of(const GetTuning& tuning) {
  std::string text;
  for (const GetParameter& parameter : get_parameters())
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", parameter.name, parameter.show(tuning));
  return text;
}

std::string here(const GetTuning& tuning, std::uint64_t width, const GroupCounts& groups) {
  constexpr std::uint64_t kWide = 16, kNarrow = 4;  // bytes of a piece
  const GetBlock block = get_block(tuning, row_bytes(width) % kWide == 0 ? kWide : kNarrow);
  const GetGrid grid = get_grid(tuning, groups.local, groups.remote);
  return fmt::format(
      "{} bytes of shared memory per block, {} warps, {} blocks, at least {} of them at once on a "
      "multiprocessor of compute capability 9.0",
      block.shared, grid.warps, grid.blocks, blocks_at_once(block, {}));
}

std::string by_mgg(const GetTuning& tuning, std::uint64_t width, const GroupCounts& groups) {
  if (std::max(tuning.ps, tuning.remote()) > GetTuning::kMostNeighbours)
    return "has no settings without neighbour partitioning";
  const MggModel model = mgg_model(tuning, width, groups);
  return fmt::format(
      "WPW {} floats, SMEM {} bytes per block, {} warps, {} blocks; {} its space of search",
      model.floats_per_warp, model.shared, model.warps, model.blocks,
      in_mgg_space(tuning, width, GpuLimits{}.shared) ? "within" : "outside of");
}

std::string by_gnnadvisor(std::uint64_t width) {
  const GnnAdvisorModel model = gnnadvisor_model(width);
  return fmt::format("ngs {}, dw {}, {} threads per block: WPT {} floats, SMEM {} bytes per block",
                     model.ngs, model.dw, model.tpb, model.floats_per_thread, model.shared);
}

}  // namespace

std::vector<std::string> explain_get(const AnyCsr& graph, const Partition& partition,
                                     const GetTuning& tuning, std::uint64_t width) {
  const GroupCounts groups = most_groups(graph, partition, tuning);
  return {fmt::format("strategy get at {}", settings_of(tuning)),
          fmt::format("  {:<14}{} local and {} remote groups, of the rank with the most", "groups",
                      groups.local, groups.remote),
          fmt::format("  {:<14}{}", "here", here(tuning, width, groups)),
          fmt::format("  {:<14}{}", "MGG's model", by_mgg(tuning, width, groups)),
          fmt::format("  {:<14}would take {}", "GNNAdvisor", by_gnnadvisor(width))};
}

}  // namespace plait::cli
