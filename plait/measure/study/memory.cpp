#include "plait/measure/study/memory.h"

#include <algorithm>
#include <atomic>
#include <fstream>

#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/timer.h"
#include "plait/measure/study/training.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/train.h"
#include "plait/nn/training/trainable.h"
#include "plait/table/sharded/cuda/gpu_array.h"
#include "plait/table/sharded/place.h"
#include "plait/table/sharded/table.h"
#include "plait/table/store_memory.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

std::uint64_t memory_in_use(bool gpus) {
  if (gpus) {
    release_gpu_caches();
    return gpu_used_memory();
  }
  give_back_freed_memory();
  return held_memory() + held_shared_memory();
}

std::uint64_t above(std::uint64_t after, std::uint64_t before) {
  return after > before ? after - before : 0;
}

// Returns the bytes of one rank's item of the account, by the beginning of its name.
std::uint64_t item_bytes(const MemoryPlan& plan, std::string_view name) {
  for (const MemoryItem& item : plan.items)
    if (std::string_view(item.name).starts_with(name)) return std::ranges::max(item.bytes);
  return 0;
}

class MemoryMeter {
 public:
  MemoryMeter(World& world, const Dataset& dataset, const Partition& partition,
              const StudyEntry& entry, const StudyMemoryInput& input)
      : world_(world),
        dataset_(dataset),
        partition_(partition),
        entry_(entry),
        input_(input),
        gpus_(entry.options.route.gpu) {
    check_dataset(dataset, sampled_config(entry, input.seed));
  }

  StudyMemory measure() {
    switch (*entry_.component) {
      case StudyComponent::structure:
        gpus_ ? structure() : graph_as_read();
        break;
      case StudyComponent::features:
        features();
        break;
      case StudyComponent::training:
        training();
        break;
    }
    std::ranges::sort(found_.times.ms);
    std::ranges::sort(measured_);
    found_.planned = largest_of_all(world_, found_.planned);
    found_.measured = largest_of_all(world_, measured_[measured_.size() / 2]);
    return std::move(found_);
  }

 private:
  StoreQuestion question(TablePlace place, bool shard_structure) const {
    StoreQuestion q = store_question(dataset_, {.place = place}, world_.size(), gpus_);
    q.shard_structure = shard_structure;
    return q;
  }

  // make() returns an object that holds the component.
  template <class Make>
  void take(const Make& make) {
    for (int r = 0; r < input_.repetitions; ++r) {
      world_.barrier();
      const std::uint64_t before = memory_in_use(gpus_);
      const Stopwatch watch;
      const auto made = make();
      found_.times.ms.push_back(largest_of_all(world_, watch.seconds() * 1e3));
      measured_.push_back(above(memory_in_use(gpus_), before));
    }
  }

  // The arrays of all ranks' GPUs together.
  void structure() {
    found_.planned =
        item_bytes(plan_store(question(TablePlace::gpu, world_.size() > 1)).memory, "structure");
    take([&] {
      std::vector<std::unique_ptr<GpuArray>> arrays;
      const auto place = [&](std::span<const std::byte> content) {
        if (!content.empty())
          arrays.push_back(world_.size() > 1 ? GpuArray::sharded(world_, content)
                                             : GpuArray::replicated(content));
      };
      std::visit(
          [&](const auto& csr) {
            place(std::as_bytes(csr.offsets.span()));
            place(std::as_bytes(csr.neighbours.span()));
            place(std::as_bytes(csr.weights.span()));
          },
          dataset_.graph);
      return arrays;
    });
  }

  // Arrays that stay in the file take none.
  void graph_as_read() {
    const StoreQuestion q = question(TablePlace::host, false);
    const Features& f = dataset_.features;
    if (!q.mapped_file)
      found_.planned = q.structure + q.labels + f.f32.size() * sizeof(float) +
                       f.bf16.size() * sizeof(BFloat16) + dataset_.splits.size() +
                       f.sparse.offsets.size() * sizeof(EdgeOffset) +
                       f.sparse.neighbours.size() * (sizeof(std::uint32_t) + sizeof(float));
    take(input_.graph);
  }

  void features() {
    const TablePlace place = gpus_ ? TablePlace::gpu : TablePlace::host;
    const StoreQuestion q = question(place, false);
    found_.planned = item_bytes(plan_store(q).memory, "features");
    const TableSource rows = rows_of(dataset_.features);
    take([&] { return Table::create(world_, q.table, rows, device_of(gpus_)); });
  }

  // Returns the bytes of the table that training on GPUs makes, at the place that it chooses.
  std::uint64_t table_bytes(const TrainConfig& config) {
    if (!gpus_ || dataset_.features.is_sparse()) return 0;
    StoreQuestion q = question(TablePlace::gpu, false);
    q.structure = q.labels = 0;
    q.table.place = choose_place(world_, q, false,
                                 sampled_bytes_ahead(dataset_, partition_, config, world_.rank()));
    return item_bytes(plan_store(q).memory, "features");
  }

  void training() {
    TrainConfig config = sampled_config(entry_, input_.seed);
    config.model = model_for(config.model, dataset_);
    found_.planned =
        plan_training(dataset_, partition_, config).rank_total(world_.rank()) + table_bytes(config);
    for (int r = 0; r < input_.repetitions; ++r) {
      world_.barrier();
      std::uint64_t before = memory_in_use(gpus_);
      if (!gpus_) {
        std::ofstream("/proc/self/clear_refs") << "5";  // the peak counts from here on
        before = peak_memory();
      }
      config.epochs = 1;
      const std::atomic<bool> never{false};
      const TrainResult result =
          Trainer(world_, dataset_, partition_, config).run([](const EpochResult&) {}, never);
      found_.times.ms.push_back(result.epoch_ms);
      const RankCost& cost = result.ranks[static_cast<std::size_t>(world_.rank())];
      measured_.push_back(above(gpus_ ? cost.gpu_memory : cost.host_memory, before));
    }
  }

  World& world_;
  const Dataset& dataset_;
  const Partition& partition_;
  const StudyEntry& entry_;
  const StudyMemoryInput& input_;
  const bool gpus_;
  StudyMemory found_;
  std::vector<std::uint64_t> measured_;  // by repetition
};

}  // namespace

StudyMemory memory_for_study(World& world, const Dataset& dataset, const Partition& partition,
                             const StudyEntry& entry, const StudyMemoryInput& input) {
  // libtorch looks for GPUs once, the first time that anything asks; its CUDA part must be there by
  // then.
  torch_device(entry.options.route.gpu);
  return MemoryMeter(world, dataset, partition, entry, input).measure();
}

}  // namespace plait
