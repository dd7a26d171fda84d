// Strategy `get` on GPUs: own rows are put where all ranks can read them, and one kernel reads a
// remote row for each remote edge, between the sums of local neighbour groups (MGG, sections 4 and
// 5; kernels/cuda/get.cuh). One row crosses the link for every remote edge. No halo is stored.
//
// NVSHMEM's device functions find a row of another rank by the rank and the address at which the
// row would stand in this rank's own part of the heap, since slots begin at the same offset of
// each.
//
// Own rows are not overwritten while a peer may still read them: each rank raises a signal when its
// kernel has ended, for which the others wait before they place the next step's rows.
#include "plait/base/error.h"
#include "plait/exchange/cuda/strategy.cuh"
#include "plait/kernels/cuda/get.cuh"
#include "plait/kernels/cuda/get_module.cuh"
#include "plait/machine/machine.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/nvshmem.h"

namespace plait {
namespace {

constexpr int kPlaced = 0;  // signal

class DeviceGet : public DeviceStrategy {
 public:
  DeviceGet(const DeviceGraph& graph, DeviceLink& link, const GetTuning& tuning,
            const GetModule* module)
      : graph_(graph), link_(link), tuning_(tuning), module_(module) {
    for (int rank = 0; rank < link.ranks(); ++rank)
      if (rank != link.rank()) {
        placed_.push_back({rank, kPlaced});
        done_.push_back({rank, DeviceSignals::kDone});
      }
  }

  void prepare(const DeviceProduct& p) override {
    const DeviceShard& shard = graph_.shard;
    if (!groups_) {
      const DeviceArray<EdgeOffset> split = edges_from_slot(shard, shard.own, p.stream);
      groups_ = std::make_unique<GetGroups>(
          shard.offsets.data(), split.data(), shard.offsets.data() + 1, shard.own,
          GetGroupOptions{
              .ps = tuning_.ps, .remote_ps = tuning_.remote(), .clusters = graph_.clusters.data()},
          p.stream);
    }
    if (repeatable(p)) partial_sums_.reserve(get_scratch(*groups_, p.width), link_.was_recorded());
    const std::vector<PeerBlock> blocks = peer_blocks();
    require_get(args_of(p, reinterpret_cast<const float*>(link_.slots(link_.rank())), blocks));
  }
  void run(const DeviceProduct& p) override {
    DeviceSignals& signals = link_.signals();
    signals.wait(done_, p.stream, 1);
    const float* own = place_own_rows(p, graph_, link_, link_.ranks() > 1);
    if (link_.ranks() > 1) signals.raise_everywhere(kPlaced, p.stream);
    signals.wait(placed_, p.stream);
    {
      const auto span = link_.span("get and sum", 0, "sum", p.stream);
      const std::vector<PeerBlock> blocks = peer_blocks();
      spmm_get(args_of(p, own, blocks), p.stream);
    }
    if (link_.ranks() > 1) signals.end_step({p.result(graph_.shard.own)}, p.stream);
  }

  std::uint64_t bytes_fetched(std::uint64_t width) const override {
    return (graph_.shard.edges() - graph_.shard.local_edges) * row_bytes(width);
  }

 private:
  // Tells whether partial sums are added in order (GroupSums), for which there is not always
  // memory.
  bool repeatable(const DeviceProduct& p) const {
    return tuning_.sums == GroupSums::ordered &&
           get_scratch(*groups_, p.width) * sizeof(float) <= machine().get_partial_sums;
  }
  std::vector<PeerBlock> peer_blocks() const {
    std::vector<PeerBlock> blocks;
    for (const HaloBlock& block : graph_.shard.halo) {
      const int part = module_ != nullptr ? link_.rank() : block.owner;
      blocks.push_back({static_cast<Slot>(block.begin),
                        reinterpret_cast<const float*>(link_.slots(part)),
                        static_cast<std::uint8_t>(block.owner)});
    }
    return blocks;
  }
  // `blocks`: of peer_blocks(), as long as the arguments are used.
  DeviceGetArgs args_of(const DeviceProduct& p, const float* own,
                        std::span<const PeerBlock> blocks) {
    const DeviceShard& shard = graph_.shard;
    return {.groups = groups_.get(),
            .slots = shard.slots.data(),
            .weights = p.weighted && shard.weights.size() > 0 ? shard.weights.data() : nullptr,
            .x = own,
            .blocks = blocks,
            .stride = p.stride(),
            .width = p.width,
            .y = p.y,
            .y_stride = p.width,
            .row_scale = p.post,
            .partial_sums = repeatable(p) ? partial_sums_.data() : nullptr,
            .tuning = tuning_,
            .module = module_};
  }

  const DeviceGraph& graph_;
  DeviceLink& link_;
  const GetTuning tuning_;
  const GetModule* const module_;
  std::vector<Signal> placed_, done_;
  std::unique_ptr<GetGroups> groups_;
  StepMemory partial_sums_;
};

}  // namespace

std::unique_ptr<DeviceStrategy> make_device_get(const DeviceGraph& graph, DeviceLink& link,
                                                const GetTuning& tuning, const GetModule* module) {
  return std::make_unique<DeviceGet>(graph, link, tuning, module);
}

const GetModule* module_for_get(World& world, const GetTuning& tuning) {
  if (tuning.read_with != ReadWith::nvshmem) return nullptr;
  static const GetModule* prepared = nullptr;  // once per process
  if (prepared != nullptr) return prepared;
  Nvshmem& nvshmem = Nvshmem::join(world);
  const GetModule* loaded = nullptr;
  on_all_or_none(world, [&] {
    loaded = &GetModule::load();
    nvshmem.prepare(loaded->handle(), nvshmem_of_build());
  });
  return prepared = loaded;  // on all ranks or on none
}

}  // namespace plait
