// Strategy `paged`: the way of unified memory, the rival that MGG is compared with (section 2.2).
// The sum reads one array of rows, and pages of it that are not on this GPU are brought when they
// are first read.
//
// In one process, pages would come from the other GPUs' memory. Processes cannot share managed
// memory, so here they come from the host's: each step, every rank puts its own rows into memory
// that all ranks of the host read, and takes its halo from there into its managed array, which
// moves those pages to the host; then one pass over all edges drives them back. Whole pages cross.
// The host takes part in each step and waits for the GPU. The strategy is there to compare with,
// and is not tuned: nothing is prefetched or advised.
#include <algorithm>
#include <numeric>

#include "plait/base/fault.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/exchange/cuda/strategy.cuh"
#include "plait/exchange/strategy_run.h"
#include "plait/kernels/cuda/copy_rows.cuh"
#include "plait/symmetric/agreement.h"

namespace plait {

PagedRows::PagedRows(World& world) : world_(world), shared_(world) {
  int device = 0, on_demand = 0;
  check_cuda(cudaGetDevice(&device), "the GPU");
  check_cuda(cudaDeviceGetAttribute(&on_demand, cudaDevAttrConcurrentManagedAccess, device),
             "the GPU");
  require<UsageError>(on_demand != 0,
                      "strategy paged needs a GPU that brings pages of managed memory on demand");
}

void PagedRows::reserve(std::uint64_t own, std::uint64_t slots) {
  const std::uint64_t bytes = (Bytes(slots) * sizeof(float)).value,
                      ranks = gpu_sharers(world_)[static_cast<std::size_t>(world_.rank())];
  agree_on_failure(
      world_, failure_of([&] {
        const std::uint64_t free =
            gpu_free_memory((Bytes(bytes) * ranks).value) + (slots_ ? slots_->bytes() : 0);
        require<DoesNotFitError>(
            bytes < free / ranks,
            "strategy paged needs {} of its GPU for own rows and halo, but only {} is free for {} "
            "rank{}",
            format_bytes(bytes), format_bytes(free), ranks, ranks == 1 ? "" : "s");
      }));
  shared_.reserve(world_.size() > 1 ? own : 0);
  replace_memory(world_, slots_, bytes, [&](std::size_t size) {
    std::unique_ptr<ManagedMemory> made;
    agree_on_failure(world_, failure_of([&] { made = std::make_unique<ManagedMemory>(size); }));
    return made;
  });
}

PagedRows::ManagedMemory::ManagedMemory(std::size_t bytes) : bytes_(bytes) {
  check_cuda(cudaMallocManaged(&data_, std::max<std::size_t>(bytes, 1)), "managed memory");
}

namespace {

class Paged : public DeviceStrategy {
 public:
  Paged(const DeviceGraph& graph, DeviceLink& link, PagedRows& rows)
      : graph_(graph), link_(link), rows_(rows) {
    std::vector<std::uint32_t> owner, row;
    for (const HaloBlock& block : graph.shard.halo) {
      owner.insert(owner.end(), block.rows, static_cast<std::uint32_t>(block.owner));
      std::vector<std::uint32_t> rows = block.row.to_host();
      if (block.whole) {
        rows.resize(block.rows);
        std::iota(rows.begin(), rows.end(), 0u);
      }
      row.insert(row.end(), rows.begin(), rows.end());
    }
    halo_ = {{}, std::move(owner), std::move(row)};
  }

  void prepare(const DeviceProduct& p) override {
    if (!passes_) passes_ = std::make_unique<Passes>(graph_, link_, groups_.of({}, p.stream));
    passes_->prepare(p.width);
  }
  void run(const DeviceProduct& p) override {
    const std::uint64_t own = graph_.shard.own;
    SymmetricRows& shared = rows_.shared();
    fault_point();
    copy_rows({.from = p.x,
               .from_stride = p.width,
               .scale = p.pre,
               .count = own,
               .width = p.width,
               .to = rows_.slots()},
              p.stream);
    meet();  // the others have taken the last step's rows
    fault_point();
    if (link_.ranks() > 1 && own > 0)
      check_cuda(cudaMemcpyAsync(shared.own(), rows_.slots(), own * p.row_bytes(DType::f32),
                                 cudaMemcpyDefault, p.stream),
                 "own rows");
    link_.signals().mark(p.stream);
    check_cuda(cudaStreamSynchronize(p.stream), "own rows");
    fault_point();
    shared.barrier();
    fault_point();
    pull_halo(halo_, p.stride(), shared, rows_.slots() + own * p.stride());
    const auto span = link_.span("pass", 0, "sum", p.stream);
    passes_->run(0, p, p.rows(rows_.slots()));
  }

  bool can_be_recorded() const override { return false; }
  // Returns a lower bound: the bytes of the rows that are read, not of their pages.
  std::uint64_t bytes_fetched(std::uint64_t width) const override {
    return halo_.rows() * row_bytes(width);
  }

 private:
  // Compares the steps of ranks, as waits on GPUs do.
  void meet() {
    const auto kinds = rows_.shared().barrier(link_.signals().kind());
    for (const std::uint64_t kind : kinds)
      require_on_all<UsageError>(
          kind == kinds[0],
          "ranks are in different operations on a graph; every rank must make the same calls in "
          "the same order");
  }

  const DeviceGraph& graph_;
  DeviceLink& link_;
  PagedRows& rows_;
  Halo halo_;  // in the order of slots
  PassGroups groups_{graph_};
  std::unique_ptr<Passes> passes_;
};

}  // namespace

std::unique_ptr<DeviceStrategy> make_paged(const DeviceGraph& graph, DeviceLink& link,
                                           PagedRows& rows) {
  return std::make_unique<Paged>(graph, link, rows);
}

}  // namespace plait
