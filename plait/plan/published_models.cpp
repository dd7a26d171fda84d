#include "plait/plan/published_models.h"

#include <algorithm>

namespace plait {
namespace {

constexpr std::uint64_t kInt = 4, kFloat = 4;                         // bytes
constexpr std::uint64_t kWarp = 32;                                   // threads
constexpr std::uint64_t kWorkPerThread = 1024;                        // of GNNAdvisor
constexpr std::uint64_t kMostPs = 32, kMostDist = 16, kMostWpb = 16;  // of MGG's search

std::uint64_t published_shares(std::uint64_t all, std::uint64_t each) {
  return (all + each - 1) / each;
}

std::uint64_t mgg_shared(const GetTuning& t, std::uint64_t width) {
  return t.ps * t.wpb * kInt + 2 * t.wpb * width * kFloat;
}

}  // namespace

GroupCounts count_groups(const AnyCsr& graph, const Partition& partition, int rank,
                         const GetTuning& tuning) {
  GroupCounts groups;
  std::visit(
      [&](const auto& csr) {
        for (std::uint64_t i = 0; i < partition.size(rank); ++i) {
          std::uint64_t local = 0, remote = 0;
          for (const std::uint64_t j : csr.row(partition.vertex(rank, i)))
            ++(static_cast<int>(partition.owner(j)) == rank ? local : remote);
          groups.local += published_shares(local, tuning.ps);
          groups.remote += published_shares(remote, tuning.remote());
        }
      },
      graph);
  return groups;
}

MggModel mgg_model(const GetTuning& tuning, std::uint64_t width, const GroupCounts& groups) {
  const std::uint64_t warps = published_shares(std::max(groups.local, groups.remote), tuning.dist);
  return {.floats_per_warp = std::uint64_t{2} * tuning.ps * width * tuning.dist,
          .shared = mgg_shared(tuning, width),
          .warps = warps,
          .blocks = published_shares(warps, tuning.wpb)};
}

bool in_mgg_space(const GetTuning& tuning, std::uint64_t width, std::uint64_t shared) {
  const auto within = [](std::uint64_t value, std::uint64_t most) {
    return value >= 1 && value <= most;
  };
  return within(tuning.ps, kMostPs) && within(tuning.dist, kMostDist) &&
         within(tuning.wpb, kMostWpb) && mgg_shared(tuning, width) <= shared;
}

GnnAdvisorModel gnnadvisor_model(std::uint64_t width, std::uint64_t shared) {
  const std::uint64_t dw = width >= kWarp ? kWarp : kWarp / 2;
  const std::uint64_t ngs = std::max<std::uint64_t>(
      1, (kWorkPerThread * dw + width / 2) / std::max<std::uint64_t>(width, 1));
  const auto shared_of = [&](std::uint64_t tpb) { return tpb / kWarp * width * kFloat; };
  std::uint64_t tpb = 4 * kWarp;
  while (tpb > kWarp && shared_of(tpb) > shared) tpb /= 2;
  return {.ngs = ngs,
          .dw = dw,
          .tpb = tpb,
          .floats_per_thread = published_shares(ngs * width, dw),
          .shared = shared_of(tpb)};
}

}  // namespace plait
