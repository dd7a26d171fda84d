#include "plait/table/sharded/table.h"

#include <algorithm>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/heap.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/sharded/cuda/gpu_table.h"
#include "plait/table/store_rows.h"

namespace plait {
namespace {

// Reads a part's rows from the source and stores them, in blocks that stay in the caches.
void fill(const TableLayout& layout, int part, const TableSettings& s, const TableSource& source,
          std::byte* to) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{8} << 20;
  const std::uint64_t rows = layout.size(part), bytes = layout.source_bytes();
  const std::uint64_t most =
      std::max<std::uint64_t>(kBlockBytes / std::max<std::uint64_t>(bytes, 1), 1);
  const std::uint64_t block = std::min(rows, most);
  Buffer<std::byte> memory(block * bytes);
  for (std::uint64_t first = 0; first < rows; first += block) {
    const std::uint64_t count = std::min(block, rows - first);
    layout.read(source, part, first, count, memory.data());
    store_rows({.rows = memory.data(),
                .rows_stride = bytes,
                .count = count,
                .width = s.width,
                .type = s.type,
                .out = to + first * layout.stride(),
                .out_stride = layout.stride()});
  }
}

// Rows of each rank in its part of the heap.
class HostTable : public Table {
 public:
  HostTable(World& world, const TableSettings& s, const TableLayout& layout,
            const TableSource& source)
      : Table(Device::cpu), heap_(SymmetricHeap::create(world, layout.part_bytes())) {
    rows_ = {.rows = layout.view(), .width = s.width, .type = s.type};
    rows_.rows.own = world.rank();
    for (int rank = 0; rank < world.size(); ++rank)
      rows_.rows.base[rank] = heap_->part(rank).data();
    on_all_or_none(
        world, [&] { fill(layout, world.rank(), s, source, heap_->part(world.rank()).data()); });
    heap_->barrier();
  }

 private:
  std::unique_ptr<SymmetricHeap> heap_;
};

// Rows in memory of this process.
class OwnTable : public Table {
 public:
  OwnTable(const TableSettings& s, const TableLayout& layout, const std::byte* first,
           std::shared_ptr<const void> owner)
      : Table(Device::cpu), owner_(std::move(owner)) {
    rows_ = {.rows = layout.view(), .width = s.width, .type = s.type};
    rows_.rows.own = 0;
    rows_.rows.base[0] = first;
  }
  void set_stride(std::uint64_t stride) { rows_.rows.stride = stride; }

 private:
  std::shared_ptr<const void> owner_;
};

std::unique_ptr<Table> replicate(World& world, const TableSettings& s, const TableLayout& layout,
                                 const TableSource& source) {
  std::shared_ptr<Buffer<std::byte>> memory;
  on_all_or_none(world, [&] {
    const auto here = static_cast<std::uint64_t>(world.ranks_of_host().size());
    require_memory((Bytes(layout.part_bytes()) * here).value, "a copy of the table on each rank");
  });
  on_all_or_none(world, [&] {  // once all ranks have seen the memory that is free
    memory = std::make_shared<Buffer<std::byte>>(layout.part_bytes());
    fill(layout, 0, s, source, memory->data());
  });
  return std::make_unique<OwnTable>(s, layout, memory->data(), memory);
}

}  // namespace

std::unique_ptr<Table> Table::create(World& world, const TableSettings& s,
                                     const TableSource& source, Device device) {
  if (device == Device::gpu) return make_gpu_table(world, s, source);
  const TableLayout layout(s, world.size());
  switch (s.place) {
    case TablePlace::host:
      return together(world, "while making a table",
                      [&] { return std::make_unique<HostTable>(world, s, layout, source); });
    case TablePlace::replicated:
      return replicate(world, s, layout, source);
    default:
      throw UsageError(
          fmt::format("ranks on the CPU have no table of place '{}' that is filled; "
                      "use host or replicated",
                      to_string(s.place)));
  }
}

std::unique_ptr<Table> Table::map(std::shared_ptr<const void> owner, const std::byte* first,
                                  const TableSettings& settings, std::uint64_t stride) {
  TableSettings s = settings;
  s.place = TablePlace::mapped, s.division = TableDivision::ranges;
  auto table = std::make_unique<OwnTable>(s, TableLayout(s, 1), first, std::move(owner));
  table->set_stride(stride);
  return table;
}

std::unique_ptr<Table> Table::map(const Features& features) {
  require<UsageError>(!features.is_sparse(),
                      "sparse features are no table; make one of them, in place host");
  const auto keep = std::make_shared<Features>(features);
  const DType type = features.type();
  const void* const first =
      type == DType::bf16 ? static_cast<const void*>(keep->bf16.data()) : keep->f32.data();
  return map(keep, static_cast<const std::byte*>(first),
             {.rows = features.rows, .width = features.width, .type = type},
             features.width * size_of(type));
}

void Table::gather(const std::uint64_t* ids, std::uint64_t count, float* out, std::uint64_t stride,
                   void* stream) const {
  const GatherRows args = rows_.gather(ids, count, out, stride);
  device_ == Device::gpu ? gpu_gather_rows(args, stream) : gather_rows(args);
}

void Table::keep_hot(std::span<const std::uint64_t> ids) {
  require<UsageError>(
      ids.empty(), "copies of hot rows are for GPUs; ranks on the CPU share their host's memory");
}

}  // namespace plait
