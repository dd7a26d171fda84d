#include "plait/plan/cost_model.h"

#include <algorithm>
#include <functional>

#include "plait/base/row_stride.h"
#include "plait/plan/halo_schedule.h"

namespace plait {
namespace {

PassWidths widths_of(const Route& route, std::uint64_t width) {
  return {.y_bytes = row_bytes(width), .wire_bytes = row_bytes(width, route.wire)};
}

RankLoad load_of(const PartQuality& part) {
  return {.own = part.vertices,
          .halo = part.dense_rows,
          .local_edges = part.edges - part.remote_edges,
          .remote_edges = part.remote_edges};
}

// The work of all ranks by one strategy at one width.
class Prediction {
 public:
  Prediction(const PartitionQuality& quality, const PassWidths& width,
             const MachineProfile& profile)
      : quality_(quality), width_(width), profile_(profile) {
    for (const PartQuality& part : quality.parts) vertices_ += part.vertices;
  }

  // Returns the seconds of one part.
  double pipelined(const PartQuality& part) const {
    const std::uint64_t converted = width_.wire_bytes < width_.y_bytes ? part.whole_rows : 0;
    return std::max(overlapped(load_of(part)), sent(part.packed_rows + converted, 0));
  }
  double partial(const PartQuality& part) const {
    RankLoad load = load_of(part);
    load.halo = part.summed.rows;
    load.remote_edges = part.summed.kept_edges - std::min(part.summed.kept_edges, load.local_edges);
    const double sums =
        part.summed.sums == 0
            ? 0
            : one_pass({.own = part.summed.sums, .local_edges = part.summed.summed_edges});
    return sums + std::max(overlapped(load), sent(part.summed.packed_rows, part.summed.sums));
  }
  double bulk(const PartQuality& part) const { return brought(load_of(part)); }
  double replicate(const PartQuality& part) const {
    RankLoad load = load_of(part);
    load.halo = vertices_ - part.vertices;
    return brought(load);
  }
  double get(const PartQuality& part) const {
    const auto remote = static_cast<double>(part.remote_edges);
    const double reads =
        remote * (profile_.peer_row + static_cast<double>(width_.wire_bytes) / profile_.peer_reads);
    return std::max(reads, one_pass({.own = part.vertices, .local_edges = part.edges}));
  }

  // Returns the time of the slowest part.
  double of_all(const std::function<double(const PartQuality&)>& of_part) const {
    double most = 0;
    for (const PartQuality& part : quality_.parts) most = std::max(most, of_part(part));
    return most;
  }

 private:
  // Returns the time of a pass over all edges of rows that are there.
  double one_pass(const RankLoad& load) const {
    return predict_whole_pass(load, width_, profile_.passes);
  }
  double overlapped(const RankLoad& load) const {
    return predict_passes(load, width_, halo_cuts(load, width_, {}, profile_.passes),
                          profile_.passes);
  }
  // Returns when the last of these rows has left: a part that sends more than any part is brought
  // delays all its readers. Whole blocks are left out, unless they are converted: copy engines send
  // them at the full rate.
  double sent(std::uint64_t picked, std::uint64_t in_order) const {
    if (picked + in_order == 0) return 0;
    const auto row = static_cast<double>(width_.wire_bytes);
    const double link = profile_.passes.link, picked_link = std::min(link, profile_.picked_link);
    return profile_.passes.first_row +
           row * (static_cast<double>(picked) / picked_link + static_cast<double>(in_order) / link);
  }
  double brought(const RankLoad& load) const {
    if (load.halo == 0) return one_pass(load);
    const auto bytes = static_cast<double>(load.halo * width_.wire_bytes);
    return profile_.nccl_begin + bytes / profile_.nccl_link + one_pass(load);
  }

  const PartitionQuality& quality_;
  PassWidths width_;
  const MachineProfile& profile_;
  std::uint64_t vertices_ = 0;
};

}  // namespace

std::optional<double> predict_aggregation(const Route& route, const PartitionQuality& quality,
                                          std::uint64_t width, const MachineProfile& profile) {
  if (!route.gpu) return std::nullopt;
  const Prediction prediction(quality, widths_of(route, width), profile);
  const auto slowest = [&](auto of_part) {
    return prediction.of_all([&](const PartQuality& part) { return (prediction.*of_part)(part); });
  };
  switch (route.strategy) {
    case Strategy::replicate:
      return slowest(&Prediction::replicate);
    case Strategy::bulk:
      return slowest(&Prediction::bulk);
    case Strategy::pipelined:
      return slowest(&Prediction::pipelined);
    case Strategy::partial:
      return slowest(&Prediction::partial);
    case Strategy::get:
      return slowest(&Prediction::get);
    case Strategy::paged:
    case Strategy::automatic:
      break;
  }
  return std::nullopt;
}

int scheduled_passes(const Route& route, const PartitionQuality& quality, std::uint64_t width,
                     const MachineProfile& profile) {
  const auto most = std::ranges::max_element(quality.parts, {}, &PartQuality::dense_rows);
  return static_cast<int>(
      halo_cuts(load_of(*most), widths_of(route, width), {}, profile.passes).size());
}

}  // namespace plait
