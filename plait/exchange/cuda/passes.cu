#include <algorithm>

#include "plait/base/error.h"
#include "plait/exchange/cuda/strategy.cuh"
#include "plait/kernels/cuda/copy_rows.cuh"

namespace plait {

void DeviceStrategy::prepare_gather(const DeviceProduct&, const std::optional<PassWidths>&) {
  throw UsageError("this strategy brings no rows, as its traits say");
}

void DeviceStrategy::gather(const DeviceProduct&, const GatherEnqueue&) {}

std::span<const RowGroups> DeviceStrategy::pass_groups(const DeviceProduct&, const PassWidths&) {
  return {};
}

void require_summable(std::uint64_t width) {
  require<UsageError>(width <= kMostSpmmWidth,
                      "rows of {} floats are too wide for a sum: {} at most", width,
                      kMostSpmmWidth);
}

void require_unrecorded(std::uint64_t width, cudaStream_t stream) {
  require<UsageError>(!is_recorded(stream),
                      "this operation on rows of width {} is captured before it has run; do a few "
                      "steps before capturing",
                      width);
}

namespace {

std::vector<RowGroups> make_groups(const DeviceGraph& graph, const std::vector<std::uint64_t>& cuts,
                                   cudaStream_t stream) {
  const DeviceShard& shard = graph.shard;
  const RankLoad& load = graph.loads[static_cast<std::size_t>(shard.rank)];
  std::vector<RowGroups> groups;
  // `edges`: their approximate number.
  const auto add = [&](const EdgeOffset* begin, const EdgeOffset* end, EdgeOffset edges) {
    groups.emplace_back(begin, end, shard.own,
                        RowGroupOptions{.most = graph.group_edges(edges),
                                        .clusters = graph.clusters.data(),
                                        .skip_empty = !groups.empty(),
                                        .whole = !graph.fixed_order},
                        stream);
  };
  const EdgeOffset* const end = shard.offsets.data() + 1;
  if (cuts.empty()) {
    add(shard.offsets.data(), end, shard.edges());
    return groups;
  }
  DeviceArray<EdgeOffset> from = edges_from_slot(shard, shard.own, stream);
  add(shard.offsets.data(), from.data(), load.local_edges);
  std::uint64_t before = 0;
  for (const std::uint64_t cut : cuts) {
    DeviceArray<EdgeOffset> to = edges_from_slot(shard, shard.own + cut, stream);
    add(from.data(), to.data(),
        load.remote_edges * (cut - before) / std::max<std::uint64_t>(load.halo, 1));
    from = std::move(to);
    before = cut;
  }
  return groups;
}

}  // namespace

std::span<const RowGroups> PassGroups::of(const std::vector<std::uint64_t>& cuts,
                                          cudaStream_t stream) {
  auto found = groups_.find(cuts);
  if (found == groups_.end())
    found = groups_.emplace(cuts, make_groups(graph_, cuts, stream)).first;
  return found->second;
}

void Passes::prepare(std::uint64_t width) {
  require_summable(width);
  std::uint64_t most = 0;
  for (const RowGroups& groups : groups_) most = std::max(most, spmm_scratch(groups, width));
  partial_sums_.reserve(most, link_.was_recorded());
}

void Passes::run(std::size_t pass, const DeviceProduct& p, DeviceRows<const void> rows) {
  const RowGroups& groups = groups_[pass];
  const DeviceShard& shard = graph_.shard;
  spmm({.groups = &groups,
        .columns = shard.slots.data(),
        .weights = p.weighted && shard.weights.size() > 0 ? shard.weights.data() : nullptr,
        .x = rows,
        .x_rows = shard.slot_count(),
        .width = p.width,
        .y = {p.y, DType::f32, p.width},
        .row_scale = p.post,
        .accumulate = pass > 0,
        .partial_sums = partial_sums_.data(),
        .fixed_order = graph_.fixed_order},
       p.stream);
}

std::byte* slot_zero(const DeviceGraph& graph, const DeviceLink& link, int rank,
                     const DeviceProduct& p) {
  const std::uint64_t own = graph.loads[static_cast<std::size_t>(rank)].own;
  return link.slots(rank) + own * (p.row_bytes(DType::f32) - p.row_bytes(link.wire()));
}

const float* place_own_rows(const DeviceProduct& p, const DeviceGraph& graph, DeviceLink& link,
                            bool beside_halo) {
  const bool padded = p.stride() == p.width && reinterpret_cast<std::uintptr_t>(p.x) % 16 == 0;
  if (p.pre == nullptr && padded && !beside_halo) return p.x;
  auto* const own = reinterpret_cast<float*>(link.slots(link.rank()));
  copy_rows({.from = p.x,
             .from_stride = p.width,
             .scale = p.pre,
             .count = graph.shard.own,
             .width = p.width,
             .to = own},
            p.stream);
  return own;
}

}  // namespace plait
