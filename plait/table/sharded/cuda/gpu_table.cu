// Rows come from the source in blocks, which alternate between two stages: while the GPU copies and
// converts one, threads read the next. Copies over PCIe take 4 bytes per element at 50 GB/s, as
// long as threads take to read them from mapped files, or less.
#include <algorithm>
#include <optional>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/gpu_stream.cuh"
#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap.cuh"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/cuda/store_rows.h"
#include "plait/table/hot_rows.h"
#include "plait/table/sharded/cuda/gpu_table.h"

namespace plait {
namespace {

// Memory of the host that the GPU copies from, with a copy on the GPU.
class Stage {
 public:
  explicit Stage(std::uint64_t bytes) : there_(bytes) {
    check_pinned(cudaMallocHost(&here_, bytes), bytes, "memory for copies to the GPU");
  }
  ~Stage() { cudaFreeHost(here_); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  std::byte* here() { return static_cast<std::byte*>(here_); }
  std::byte* there() { return there_.data(); }
  void wait() { check_cuda(cudaEventSynchronize(free_.get()), "storing rows"); }
  void record(cudaStream_t stream) { free_.record(stream); }

 private:
  DeviceArray<std::byte> there_;
  void* here_ = nullptr;
  DeviceEvent free_;  // the GPU has read the stage
};

// Fills a part of the table, in memory of this GPU. Returns when it is there.
void fill(const TableLayout& layout, int part, const TableSettings& s, const TableSource& source,
          std::byte* to) {
  const std::uint64_t rows = layout.size(part), bytes = layout.source_bytes();
  if (bytes == 0 || rows == 0) return;
  constexpr std::uint64_t kStageBytes = std::uint64_t{32} << 20;
  const std::uint64_t block = std::min(rows, std::max<std::uint64_t>(kStageBytes / bytes, 1));
  Stage first_stage(block * bytes), second_stage(block * bytes);
  const GpuStream stream;  // ends before the stages do
  Stage* stages[] = {&first_stage, &second_stage};
  for (std::uint64_t first = 0, turn = 0; first < rows; first += block, ++turn) {
    Stage& stage = *stages[turn % 2];
    const std::uint64_t count = std::min(block, rows - first);
    stage.wait();
    layout.read(source, part, first, count, stage.here());
    check_cuda(cudaMemcpyAsync(stage.there(), stage.here(), count * bytes, cudaMemcpyHostToDevice,
                               stream.get()),
               "copying rows to the GPU");
    gpu_store_rows({.rows = stage.there(),
                    .rows_stride = bytes,
                    .count = count,
                    .width = s.width,
                    .type = s.type,
                    .out = to + first * layout.stride(),
                    .out_stride = layout.stride()},
                   stream.get());
    stage.record(stream.get());
  }
  check_cuda(cudaStreamSynchronize(stream.get()), "storing rows");
}

// The common part of tables of all places: the translation of ids on the GPU, copies of hot rows.
class GpuTable : public Table {
 public:
  // Collective.
  GpuTable(World& world, const TableSettings& s, const TableLayout& layout) : Table(Device::gpu) {
    rows_ = {.rows = layout.view(), .width = s.width, .type = s.type};
    on_all_or_none(world, [&] {
      fault_point();
      if (rows_.rows.owner == nullptr) return;
      owner_ = DeviceArray<std::uint32_t>(s.owners->owners());
      row_ = DeviceArray<std::uint32_t>(s.owners->rows());
      rows_.rows.owner = owner_.data(), rows_.rows.row = row_.data();
    });
  }

  void keep_hot(std::span<const std::uint64_t> ids) override {
    drop_hot();
    if (ids.empty()) return;
    Hot hot{DeviceArray<HotIds>(hot_index(ids, rows_.rows.rows)),
            DeviceArray<std::byte>(ids.size() * std::max<std::uint64_t>(rows_.rows.stride, 1)),
            DeviceArray<GatherCounts>(std::vector<GatherCounts>(1))};
    const DeviceArray<std::uint64_t> ids_there(ids);
    gpu_gather_rows({.from = rows_.rows,
                     .ids = ids_there.data(),
                     .count = ids.size(),
                     .width = rows_.rows.stride,
                     .out = hot.rows.data(),
                     .out_stride = rows_.rows.stride},
                    nullptr);
    check_cuda(cudaDeviceSynchronize(), "copying hot rows");
    hot_ = std::move(hot);
    rows_.rows.hot = hot_->index.data();
    rows_.rows.base[rows_.rows.ranks] = hot_->rows.data();
    rows_.counts = hot_->counts.data();
  }

  GatherCounts counts() const override { return hot_ ? hot_->counts.to_host()[0] : GatherCounts{}; }

 private:
  struct Hot {
    DeviceArray<HotIds> index;
    DeviceArray<std::byte> rows;
    DeviceArray<GatherCounts> counts;
  };

  void drop_hot() {
    rows_.rows.hot = nullptr, rows_.rows.base[rows_.rows.ranks] = nullptr;
    rows_.counts = nullptr;
    if (!hot_) return;
    check_cuda(cudaDeviceSynchronize(), "gathers");
    hot_.reset();
  }

  DeviceArray<std::uint32_t> owner_, row_;
  std::optional<Hot> hot_;
};

// Each rank's rows are in its part of the heap.
class HeapTable : public GpuTable {
 public:
  HeapTable(World& world, const TableSettings& s, const TableLayout& layout,
            const TableSource& source)
      : GpuTable(world, s, layout),
        heap_(DeviceHeap::create(world, layout.part_bytes(), DeviceTransport::vmm)) {
    rows_.rows.own = world.rank();
    for (int rank = 0; rank < world.size(); ++rank) rows_.rows.base[rank] = heap_->part(rank);
    on_all_or_none(world,
                   [&] { fill(layout, world.rank(), s, source, heap_->part(world.rank())); });
  }

 private:
  std::unique_ptr<DeviceHeap> heap_;
};

// The table of the host, mapped by the GPU.
class MappedHostTable : public GpuTable {
 public:
  MappedHostTable(World& world, const TableSettings& s, const TableLayout& layout,
                  const TableSource& source)
      : GpuTable(world, s, layout), table_(Table::create(world, s, source, Device::cpu)) {
    on_all_or_none(world, [&] {
      for (int rank = 0; rank < layout.parts() && layout.part_bytes() > 0; ++rank) {
        // The heap's memory is writable; the view of it is not.
        auto* const part = const_cast<std::byte*>(table_->rows().rows.base[rank]);
        parts_.push_back(std::make_unique<MappedPart>(part, layout.part_bytes()));
        rows_.rows.base[rank] = parts_.back()->there();
      }
    });
  }

 private:
  // A part of the table while the GPU maps it.
  class MappedPart {
   public:
    MappedPart(std::byte* part, std::uint64_t bytes) : part_(part) {
      check_pinned(cudaHostRegister(part, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable),
                   bytes, kWhat);
    }
    ~MappedPart() {
      cudaDeviceSynchronize();  // nothing that was enqueued reads it any more
      cudaHostUnregister(part_);
    }
    MappedPart(const MappedPart&) = delete;
    MappedPart& operator=(const MappedPart&) = delete;
    const std::byte* there() const {
      void* address = nullptr;
      check_cuda(cudaHostGetDevicePointer(&address, part_, 0), kWhat);
      return static_cast<const std::byte*>(address);
    }

   private:
    static constexpr const char* kWhat = "rows in the host's memory, which the GPU is to map";
    std::byte* part_;
  };

  std::unique_ptr<Table> table_;
  std::vector<std::unique_ptr<MappedPart>> parts_;
};

// All rows are on each GPU.
class ReplicatedTable : public GpuTable {
 public:
  ReplicatedTable(World& world, const TableSettings& s, const TableLayout& layout,
                  const TableSource& source)
      : GpuTable(world, s, layout) {
    const std::uint64_t sharers = gpu_sharers(world)[static_cast<std::size_t>(world.rank())];
    const std::uint64_t bytes = layout.part_bytes(), wanted = (Bytes(bytes) * sharers).value;
    on_all_or_none(world, [&] {
      require_memory(wanted, "a copy of the table on each GPU", gpu_free_memory(wanted));
    });
    on_all_or_none(world, [&] {
      memory_ = DeviceArray<std::byte>(bytes);
      if (bytes > 0) check_cuda(cudaMemset(memory_.data(), 0, bytes), "the gaps between rows");
      check_cuda(cudaDeviceSynchronize(), "the gaps between rows");
      fill(layout, 0, s, source, memory_.data());
    });
    rows_.rows.own = 0;
    rows_.rows.base[0] = memory_.data();
  }
  ~ReplicatedTable() override { cudaDeviceSynchronize(); }

 private:
  DeviceArray<std::byte> memory_;
};

}  // namespace

std::unique_ptr<Table> make_gpu_table(World& world, const TableSettings& s,
                                      const TableSource& source) {
  const TableLayout layout(s, world.size());
  require<UsageError>(s.place != TablePlace::mapped,
                      "GPUs do not read rows from files; use place gpu, host or replicated");
  return together(world, "while making a table", [&]() -> std::unique_ptr<Table> {
    if (s.place == TablePlace::gpu) return std::make_unique<HeapTable>(world, s, layout, source);
    if (s.place == TablePlace::host)
      return std::make_unique<MappedHostTable>(world, s, layout, source);
    return std::make_unique<ReplicatedTable>(world, s, layout, source);
  });
}

}  // namespace plait
