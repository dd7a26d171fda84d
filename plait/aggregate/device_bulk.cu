// Strategies `bulk` and `replicate` on GPUs: NCCL brings the halo in, each row once, then one pass
// sums all edges. The baseline of the strategies that do both at once: packed by a kernel where a
// peer does not read all rows, all peers in one group, own rows put beside the halo meanwhile.
#include "plait/aggregate/device_strategy_cuda.h"
#include "plait/kernels/copy_rows_cuda.h"

namespace plait {
namespace {

class DeviceBulk : public DeviceStrategy {
 public:
  DeviceBulk(const DeviceGraph& graph, DeviceLink& link, Nccl* nccl)
      : graph_(graph), link_(link), nccl_(nccl) {}

  void run(const DeviceProduct& p) override {
    const bool together = link_.ranks() > 1 && link_.wire() == DType::f32;
    if (!passes_) {
      std::vector<std::uint64_t> cuts;
      if (link_.ranks() > 1 && !together) cuts = {graph_.shard.slot_count() - graph_.shard.own};
      passes_ = std::make_unique<Passes>(graph_, cuts, p.stream);
    }
    const float* own = place_own_rows(p, graph_, link_, false);
    if (link_.ranks() > 1) {
      link_.follow(p.stream);
      exchange(p, own);
    }
    if (together && own == p.x) own = place_own_rows(p, graph_, link_, true);
    if (!together) passes_->run(0, p, {own, DType::f32, p.width});
    if (link_.ranks() == 1) return;
    link_.let_follow(p.stream);
    passes_->run(together ? 0 : 1, p, {slot_zero(graph_, link_, link_.rank(), p), link_.wire(), p.width});
  }

  std::uint64_t bytes_fetched(std::uint64_t width) const override {
    return (graph_.shard.slot_count() - graph_.shard.own) * width * size_of(link_.wire());
  }

 private:
  void exchange(const DeviceProduct& p, const float* own) {
    const std::uint64_t row_bytes = p.row_bytes(link_.wire());
    const auto packs = [&](const SendBlock& block) {
      return !block.whole || link_.wire() != DType::f32;
    };
    std::uint64_t bytes = 0;
    for (const SendBlock& block : graph_.send)
      if (packs(block)) bytes += block.rows * row_bytes;
    if (packed_.size() < bytes) packed_ = DeviceArray<std::byte>(bytes);
    std::vector<NcclPart> send(static_cast<std::size_t>(link_.ranks())), receive(send.size());
    std::byte* next = packed_.data();
    for (const SendBlock& block : graph_.send) {
      NcclPart& part = send[static_cast<std::size_t>(block.peer)];
      part = {const_cast<float*>(own), block.rows * row_bytes};
      if (!packs(block)) continue;
      copy_rows({.from = own,
                 .rows = block.whole ? nullptr : block.row.data(),
                 .count = block.rows,
                 .width = p.width,
                 .to = next,
                 .type = link_.wire()},
                link_.stream());
      part.data = next;
      next += part.bytes;
    }
    for (const HaloBlock& block : graph_.shard.halo)
      receive[static_cast<std::size_t>(block.owner)] = {
          slot_zero(graph_, link_, link_.rank(), p) + block.begin * row_bytes,
          block.rows * row_bytes};
    nccl_->all_to_all(send, receive, link_.stream());
  }

  const DeviceGraph& graph_;
  DeviceLink& link_;
  Nccl* nccl_;
  std::unique_ptr<Passes> passes_;
  DeviceArray<std::byte> packed_;
};

}  // namespace

std::unique_ptr<DeviceStrategy> make_device_bulk(const DeviceGraph& graph, DeviceLink& link,
                                                 Nccl* nccl) {
  return std::make_unique<DeviceBulk>(graph, link, nccl);
}

}  // namespace plait
