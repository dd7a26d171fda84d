// Strategies `bulk` and `replicate` on GPUs: NCCL brings the halo in, each row once, then one pass
// sums all edges. This is the baseline of the strategies that do both at once. A kernel packs rows
// where a peer does not read all of them, all peers are served in one group, and own rows are put
// beside the halo meanwhile.
#include "plait/base/error.h"
#include "plait/exchange/cuda/strategy.cuh"
#include "plait/kernels/cuda/copy_rows.cuh"
#include "plait/kernels/cuda/cusparse.cuh"

namespace plait {
namespace {

class DeviceBulk : public DeviceStrategy {
 public:
  DeviceBulk(const DeviceGraph& graph, DeviceLink& link, Nccl* nccl, bool sum_by_cusparse)
      : graph_(graph), link_(link), nccl_(nccl), by_cusparse_(sum_by_cusparse) {}

  void prepare(const DeviceProduct& p) override {
    prepare_exchange(p);
    if (by_cusparse_) return prepare_cusparse(p);
    if (!passes_) {
      std::vector<std::uint64_t> cuts;
      if (link_.ranks() > 1 && link_.wire() != DType::f32)
        cuts = {graph_.shard.slot_count() - graph_.shard.own};
      passes_ = std::make_unique<Passes>(graph_, link_, groups_.of(cuts, p.stream));
    }
    passes_->prepare(p.width);
  }

  void run(const DeviceProduct& p) override {
    const bool together = link_.ranks() > 1 && link_.wire() == DType::f32;
    const float* own = place_own_rows(p, graph_, link_, false);
    if (link_.ranks() > 1) {
      link_.follow(p.stream);
      exchange(p, own);
    }
    if (together && own == p.x) own = place_own_rows(p, graph_, link_, true);
    if (!together) sum(0, p, p.rows(own));
    if (link_.ranks() == 1) return;
    link_.let_follow(p.stream);
    sum(together ? 0 : 1, p, p.rows(slot_zero(graph_, link_, link_.rank(), p), link_.wire()));
    link_.signals().end_step({p.result(graph_.shard.own)}, p.stream);
  }

  void prepare_gather(const DeviceProduct& p, const std::optional<PassWidths>& widths) override {
    prepare_exchange(p);
    if (widths) groups_.of({}, p.stream);
  }
  void gather(const DeviceProduct& p, const GatherEnqueue& use) override {
    const bool alone = link_.ranks() == 1;
    const float* const own = place_own_rows(p, graph_, link_, !alone);
    if (alone) return use.enqueue(own, 0);
    link_.follow(p.stream);
    exchange(p, own);
    link_.let_follow(p.stream);
    use.enqueue(own, 0);
    link_.signals().end_step(use.results, p.stream);
  }
  std::span<const RowGroups> pass_groups(const DeviceProduct& p, const PassWidths&) override {
    return groups_.of({}, p.stream);
  }

  bool can_be_recorded() const override { return nccl_ == nullptr; }
  std::uint64_t bytes_fetched(std::uint64_t width) const override {
    return (graph_.shard.slot_count() - graph_.shard.own) * row_bytes(width, link_.wire());
  }

 private:
  void sum(std::size_t pass, const DeviceProduct& p, DeviceRows<const void> rows) {
    const auto span = link_.span("pass", pass, "sum", p.stream);
    if (!by_cusparse_) return passes_->run(pass, p, rows);
    const DeviceShard& shard = graph_.shard;
    if (!cusparse_ || p.y != y_ || rows.data != x_ || p.width != width_) {
      y_ = p.y, x_ = rows.data, width_ = p.width;
      cusparse_.reset();
      cusparse_ = std::make_unique<CusparseSpmm>(
          CusparseArgs{.rows = static_cast<std::int64_t>(shard.own),
                       .columns = static_cast<std::int64_t>(shard.slot_count()),
                       .edges = static_cast<std::int64_t>(shard.edges()),
                       .offsets = offsets_.data(),
                       .slots = shard.slots.data(),
                       .weights = p.weighted ? shard.weights.data() : ones_.data(),
                       .x = static_cast<const float*>(rows.data),
                       .x_stride = static_cast<std::int64_t>(rows.stride),
                       .y = p.y,
                       .width = static_cast<std::int64_t>(p.width),
                       .stream = p.stream});
    }
    cusparse_->run();
  }

  void prepare_cusparse(const DeviceProduct& p) {
    const DeviceShard& shard = graph_.shard;
    require<UsageError>((link_.ranks() == 1 || link_.wire() == DType::f32) && p.post == nullptr &&
                            shard.edges() >> 31 == 0 && (!p.weighted || shard.weights.size() > 0),
                        "cuSPARSE is compared on one pass of at most 2^31 edges, without scaling");
    if (ones_.size() > 0) return;
    const std::vector<EdgeOffset> offsets = graph_.shard.offsets.to_host();
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    offsets_ = DeviceArray<std::int32_t>(std::span<const std::int32_t>(narrow));
    const std::vector<float> ones(graph_.shard.edges(), 1.0f);
    ones_ = DeviceArray<float>(std::span<const float>(ones));
    check_cuda(cudaStreamSynchronize(p.stream), "cuSPARSE's arrays");
  }

  // Tells whether rows for a peer are packed before they leave.
  bool packs(const SendBlock& block) const { return !block.whole || link_.wire() != DType::f32; }
  void prepare_exchange(const DeviceProduct& p) {
    if (link_.ranks() == 1) return;
    std::uint64_t bytes = 0;
    for (const SendBlock& block : graph_.send)
      if (packs(block)) bytes += block.rows * p.row_bytes(link_.wire());
    // NCCL reads whole words, also where the last is cut short.
    packed_.reserve((bytes + 15) / 16 * 16 / sizeof(float), link_.was_recorded());
  }

  void exchange(const DeviceProduct& p, const float* own) {
    const auto span = link_.span("exchange", 0, "link", link_.stream());
    const std::uint64_t row_bytes = p.row_bytes(link_.wire());
    std::vector<std::span<const std::byte>> send(static_cast<std::size_t>(link_.ranks()));
    std::vector<std::span<std::byte>> receive(send.size());
    auto* next = reinterpret_cast<std::byte*>(packed_.data());
    for (const SendBlock& block : graph_.send) {
      std::span<const std::byte>& part = send[static_cast<std::size_t>(block.peer)];
      part = {reinterpret_cast<const std::byte*>(own), block.rows * row_bytes};
      if (!packs(block)) continue;
      copy_rows({.from = own,
                 .from_stride = p.stride(),
                 .rows = block.whole ? nullptr : block.row.data(),
                 .count = block.rows,
                 .width = p.width,
                 .to = next,
                 .type = link_.wire()},
                link_.stream());
      part = {next, part.size()};
      next += part.size();
    }
    for (const HaloBlock& block : graph_.shard.halo)
      receive[static_cast<std::size_t>(block.owner)] = {
          slot_zero(graph_, link_, link_.rank(), p) + block.begin * row_bytes,
          block.rows * row_bytes};
    link_.meet(link_.stream());
    link_.signals().wait_elsewhere(true, link_.stream());
    nccl_->all_to_all(send, receive, link_.stream());
    link_.signals().wait_elsewhere(false, link_.stream());
  }

  const DeviceGraph& graph_;
  DeviceLink& link_;
  Nccl* nccl_;
  PassGroups groups_{graph_};
  std::unique_ptr<Passes> passes_;
  StepMemory packed_;  // rows for peers
  // For cuSPARSE.
  const bool by_cusparse_;
  DeviceArray<std::int32_t> offsets_;
  DeviceArray<float> ones_;
  std::unique_ptr<CusparseSpmm> cusparse_;
  const void* x_ = nullptr;
  float* y_ = nullptr;
  std::uint64_t width_ = 0;
};

}  // namespace

std::unique_ptr<DeviceStrategy> make_device_bulk(const DeviceGraph& graph, DeviceLink& link,
                                                 Nccl* nccl, bool sum_by_cusparse) {
  return std::make_unique<DeviceBulk>(graph, link, nccl, sum_by_cusparse);
}

}  // namespace plait
