#include <algorithm>
#include <vector>

#include "plait/aggregate/cuda/managed_bench.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/row_stride.h"
#include "plait/base/saturating.h"
#include "plait/kernels/cuda/copy_rows.cuh"
#include "plait/kernels/cuda/get.cuh"
#include "plait/placement/cuda/place_rows.cuh"
#include "plait/placement/own_rows.h"
#include "plait/plan/machine.h"
#include "plait/reorder/cuda/clusters.cuh"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// Sends this thread's work to one GPU until the end of the scope.
class OnGpu {
 public:
  explicit OnGpu(int index) : before_(current_gpu()) { use_gpu(index); }
  ~OnGpu() { cudaSetDevice(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_;
};

// Managed memory of all GPUs, which this object owns.
class ManagedRows {
 public:
  explicit ManagedRows(std::size_t floats) {
    check_cuda(cudaMallocManaged(&data_, std::max<std::size_t>(floats, 1) * sizeof(float)),
               "managed memory");
  }
  ~ManagedRows() { cudaFree(data_); }
  ManagedRows(const ManagedRows&) = delete;
  ManagedRows& operator=(const ManagedRows&) = delete;

  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
};

// Returns the number, in this process, of the GPU of this identity.
int gpu_of(const GpuId& id) {
  for (int index = 0; index < gpu_count(); ++index) {
    const OnGpu on(index);
    if (current_gpu_id() == id) return index;
  }
  throw Error("rank 0 does not see the GPUs of all ranks, which managed memory needs");
}

void require_pages_on_demand(int gpu) {
  int on_demand = 0;
  check_cuda(cudaDeviceGetAttribute(&on_demand, cudaDevAttrConcurrentManagedAccess, gpu),
             "the GPU");
  require(on_demand != 0, "GPU {} does not bring pages of managed memory on demand", gpu);
}

// Returns the features of a rank's own vertices, as bench.h says.
std::vector<float> features_of(const Partition& partition, int rank, std::uint64_t width) {
  std::vector<float> x(partition.size(rank) * width);
  for (std::uint64_t i = 0; i < x.size(); ++i)
    x[i] = bench_feature(partition.vertex(rank, i / width), i % width);
  return x;
}

// One rank's part, on its GPU. All members are made, used and destroyed while that GPU is current.
struct Part {
  Part(const AnyCsr& graph, const Partition& partition, int rank, const GetTuning& tuning,
       std::uint64_t width)
      : shard(std::visit(
            [&](const auto& csr) {
              return place_rows(own_rows(csr, partition, rank), partition, rank,
                                {.halo = HaloKind::complete}, nullptr);
            },
            graph)),
        split(edges_from_slot(shard, shard.own, nullptr)),
        clusters(find_clusters(shard.offsets.data(), split.data(), shard.slots.data(), shard.own,
                               kClusterRounds, nullptr)),
        groups(shard.offsets.data(), split.data(), shard.offsets.data() + 1, shard.own,
               {.ps = tuning.ps, .remote_ps = tuning.remote(), .clusters = clusters.data()},
               nullptr),
        x(features_of(partition, rank, width)),
        y(shard.own * width) {
    const std::uint64_t sums = get_scratch(groups, width);
    if (sums * sizeof(float) <= machine().get_partial_sums) partial_sums = DeviceArray<float>(sums);
    wait_for_gpu();
  }

  DeviceShard shard;
  DeviceArray<EdgeOffset> split;
  DeviceArray<std::uint32_t> clusters;
  GetGroups groups;
  DeviceArray<float> x, y, partial_sums;
  DeviceEvent placed, done;  // own rows stand in managed memory; the sum has ended
};

}  // namespace

struct ManagedBench::State {
  World& world;
  const AnyCsr& graph;
  const Partition& partition;
  GetTuning tuning;
  std::uint64_t width;
  std::vector<std::uint64_t> starts;  // of each rank's rows in the managed array
  std::vector<int> gpus;              // of the ranks, as rank 0 numbers them
  // On rank 0 only:
  std::vector<std::unique_ptr<Part>> parts;
  std::unique_ptr<ManagedRows> rows;

  ~State() {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const OnGpu on(gpus[rank]);
      cudaDeviceSynchronize();
      parts[rank].reset();
    }
  }

  std::uint64_t stride() const { return row_stride(width); }
  float* rows_of(int rank) const {
    return rows->data() + starts[static_cast<std::size_t>(rank)] * stride();
  }

  // Calls work(rank, part) with each rank's GPU as the current one.
  template <class Work>
  void on_each(const Work& work) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const OnGpu on(gpus[rank]);
      work(static_cast<int>(rank), *parts[rank]);
    }
  }

  // Throws DoesNotFitError unless each GPU has room for the rows of all ranks.
  void require_room() const {
    const std::uint64_t bytes = (Bytes(starts.back()) * stride() * sizeof(float)).value;
    for (const int gpu : gpus) {
      const OnGpu on(gpu);
      const std::uint64_t free = gpu_free_memory();
      require<DoesNotFitError>(bytes < free,
                               "managed memory for the rows of all ranks takes {}, but only {} is "
                               "free on GPU {}",
                               format_bytes(bytes), format_bytes(free), gpu);
    }
  }

  void make(const std::vector<GpuId>& ids) {
    for (const GpuId& id : ids) gpus.push_back(gpu_of(id));
    for (const int gpu : gpus) require_pages_on_demand(gpu);
    require_room();
    for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
      const OnGpu on(gpus[rank]);
      parts.push_back(
          std::make_unique<Part>(graph, partition, static_cast<int>(rank), tuning, width));
    }
    require_room();  // beside the parts
    rows = std::make_unique<ManagedRows>(starts.back() * stride());
  }

  // Lets the current GPU wait until the others have come to their event.
  void wait_for_others(int rank, DeviceEvent Part::*event) {
    for (std::size_t other = 0; other < parts.size(); ++other)
      if (static_cast<int>(other) != rank)
        check_cuda(cudaStreamWaitEvent(nullptr, (*parts[other].*event).get(), 0), "an event");
  }

  void step() {
    on_each([&](int rank, Part& part) {
      wait_for_others(rank, &Part::done);  // they have read the last step's rows
      copy_rows({.from = part.x.data(),
                 .from_stride = width,
                 .count = part.shard.own,
                 .width = width,
                 .to = rows_of(rank)},
                nullptr);
      part.placed.record(nullptr);
    });
    on_each([&](int rank, Part& part) {
      wait_for_others(rank, &Part::placed);
      sum(rank, part);
      part.done.record(nullptr);
    });
  }

  void sum(int rank, Part& part) {
    const DeviceShard& shard = part.shard;
    std::vector<PeerBlock> blocks;
    for (const HaloBlock& block : shard.halo)
      blocks.push_back({static_cast<Slot>(block.begin), rows_of(block.owner)});
    spmm_get({.groups = &part.groups,
              .slots = shard.slots.data(),
              .x = rows_of(rank),
              .blocks = blocks,
              .stride = stride(),
              .width = width,
              .y = part.y.data(),
              .y_stride = width,
              .partial_sums = part.partial_sums.data(),
              .tuning = tuning},
             nullptr);
  }

  void steps(int count) {
    for (int k = 0; k < count; ++k) step();
    on_each([](int, Part&) { wait_for_gpu(); });
  }
};

ManagedBench::ManagedBench(World& world, const AnyCsr& graph, const Partition& partition,
                           const GetTuning& tuning, std::uint64_t width)
    : state_(new State{.world = world,
                       .graph = graph,
                       .partition = partition,
                       .tuning = tuning,
                       .width = width,
                       .starts = place_starts(partition),
                       .gpus = {},
                       .parts = {},
                       .rows = {}}) {
  const std::vector<GpuId> ids = gather_values(world, current_gpu_id());
  on_all_or_none(world, [&] {
    if (world.rank() == 0) state_->make(ids);
  });
}

ManagedBench::~ManagedBench() = default;

double ManagedBench::check() {
  State& s = *state_;
  double worst = 0;
  on_all_or_none(s.world, [&] {
    s.on_each([](int, Part& part) {
      if (part.y.size() > 0)  // NaN
        check_cuda(cudaMemset(part.y.data(), 0xff, part.y.size() * sizeof(float)), "y");
    });
    s.steps(s.parts.empty() ? 0 : 1);
    s.on_each([&](int rank, Part& part) {
      const std::vector<float> y = part.y.to_host();
      worst = std::max(worst, worst_error(s.graph, s.partition, rank, s.width, y.data()));
    });
  });
  return largest_of_all(s.world, worst);
}

Times ManagedBench::time_steps(const BenchEffort& effort) {
  State& s = *state_;
  return plait::time_steps(s.world, effort, [&](int count) {
    on_all_or_none(s.world, [&] {
      if (!s.parts.empty()) s.steps(count);
    });
  });
}

}  // namespace plait
