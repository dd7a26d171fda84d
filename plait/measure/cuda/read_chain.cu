// One thread of rank 0's GPU follows the chain. Parts of ranks are in the symmetric heap. Managed
// memory belongs to one process, so that rank 0's lets the GPUs of all ranks write their parts.
#include <algorithm>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/gpu_stream.cuh"
#include "plait/base/cuda/on_gpu.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/limits.h"
#include "plait/base/memory.h"
#include "plait/measure/cuda/read_chain.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap.cuh"
#include "plait/symmetric/peer_access.h"

namespace plait {
namespace {

struct GpuChain {
  const std::uint64_t* parts[kMostGpus];
  ChainShape shape;
  std::uint64_t begin, reads;
  std::uint64_t* end;  // the place where it ends
};

__global__ void follow(const __grid_constant__ GpuChain chain) {
  const std::uint64_t mask = (std::uint64_t{1} << chain.shape.shift) - 1;
  *chain.end = follow_chain(
      chain.begin, chain.reads, chain.shape.words(),
      [&](std::uint64_t place) { return chain.parts[place >> chain.shape.shift][place & mask]; });
}

__global__ void write_chain(std::uint64_t* to, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count; i += all)
    to[i] = chain_word(first + i);
}

// Writes a part by the current GPU, and waits for it.
void write_part(std::uint64_t* to, std::uint64_t part, const ChainShape& shape) {
  write_chain<<<1024, 256>>>(to, part << shape.shift, std::uint64_t{1} << shape.shift);
  check_cuda(cudaGetLastError(), "writing memory");
  wait_for_gpu();
}

// The memory, as kernels of rank 0 read it. Members are collective.
class ChainParts {
 public:
  virtual ~ChainParts() = default;
  // Comes before each repetition.
  virtual void prepare() {}
  const std::uint64_t* parts[kMostGpus] = {};
};

class OwnParts : public ChainParts {
 public:
  OwnParts(World& world, const ChainShape& shape) {
    on_all_or_none(world, [&] {
      if (world.rank() != 0) return;
      words_ = DeviceArray<std::uint64_t>(std::uint64_t{1} << shape.shift);
      write_part(words_.data(), 0, shape);
      parts[0] = words_.data();
    });
  }

 private:
  DeviceArray<std::uint64_t> words_;
};

class RankParts : public ChainParts {
 public:
  RankParts(World& world, const ChainShape& shape)
      : heap_((require_peer_access(world),
               DeviceHeap::create(world, sizeof(std::uint64_t) << shape.shift,
                                  DeviceTransport::vmm))) {
    for (int rank = 0; rank < world.size(); ++rank)
      parts[rank] = reinterpret_cast<const std::uint64_t*>(heap_->part(rank));
    on_all_or_none(world, [&] {
      write_part(reinterpret_cast<std::uint64_t*>(heap_->part(world.rank())),
                 static_cast<std::uint64_t>(world.rank()), shape);
    });
  }

 private:
  std::unique_ptr<DeviceHeap> heap_;
};

class ManagedParts : public ChainParts {
 public:
  ManagedParts(World& world, const ChainShape& shape) : world_(world), shape_(shape) {
    const std::vector<GpuId> ids = gather_found(world, current_gpu_id);
    on_all_or_none(world, [&] {
      if (world.rank() != 0) return;
      for (const GpuId& id : ids) {
        gpus_.push_back(gpu_of(id));
        require(gpus_.back() >= 0,
                "rank 0 does not see the GPUs of all ranks, which write its memory");
        const OnGpu there(gpus_.back());
        require_fits(shape.words() * sizeof(std::uint64_t));
      }
      check_cuda(cudaMallocManaged(&words_, shape.words() * sizeof(std::uint64_t)),
                 "managed memory");
      for (std::size_t rank = 0; rank < gpus_.size(); ++rank)
        parts[rank] = words_ + (static_cast<std::uint64_t>(rank) << shape.shift);
    });
  }
  ~ManagedParts() override { cudaFree(words_); }
  ManagedParts(const ManagedParts&) = delete;
  ManagedParts& operator=(const ManagedParts&) = delete;

  void prepare() override {
    on_all_or_none(world_, [&] {
      for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
        const OnGpu there(gpus_[rank]);
        write_part(words_ + (static_cast<std::uint64_t>(rank) << shape_.shift), rank, shape_);
      }
    });
  }

 private:
  // So that no page is ever driven out of a GPU.
  static void require_fits(std::uint64_t bytes) {
    int on_demand = 0;
    check_cuda(
        cudaDeviceGetAttribute(&on_demand, cudaDevAttrConcurrentManagedAccess, current_gpu()),
        "the GPU");
    require(on_demand != 0, "GPU {} does not bring pages of managed memory on demand",
            current_gpu());
    require_memory(bytes, "managed memory on each GPU", gpu_free_memory(bytes));
  }

  World& world_;
  const ChainShape shape_;
  std::vector<int> gpus_;  // by rank; on rank 0 alone
  std::uint64_t* words_ = nullptr;
};

std::unique_ptr<ChainParts> make_parts(World& world, ChainMemory memory, const ChainShape& shape) {
  switch (memory) {
    case ChainMemory::own:
      return std::make_unique<OwnParts>(world, shape);
    case ChainMemory::ranks:
      return std::make_unique<RankParts>(world, shape);
    default:
      return std::make_unique<ManagedParts>(world, shape);
  }
}

// Returns the ms of 1,000 reads, by this rank's GPU.
double follow_once(GpuChain chain) {
  DeviceArray<std::uint64_t> end(1);
  chain.end = end.data();
  const GpuStream stream;
  DeviceEvent begun, ended;
  begun.record(stream.get());
  follow<<<1, 1, 0, stream.get()>>>(chain);
  check_cuda(cudaGetLastError(), "reading memory");
  ended.record(stream.get());
  const double ms = static_cast<double>(ended.since(begun));
  check_chain(chain.begin, chain.reads, chain.shape, end.to_host()[0]);
  return ms * 1e3 / static_cast<double>(chain.reads);
}

}  // namespace

std::vector<double> time_gpu_read_chain(World& world, const ChainQuestion& question) {
  const bool own = question.memory == ChainMemory::own;
  const ChainShape shape =
      chain_shape(question.bytes, own ? 1 : static_cast<std::uint64_t>(world.size()));
  const std::unique_ptr<ChainParts> parts = make_parts(world, question.memory, shape);
  const auto measure = [&](int repetition) {
    GpuChain chain{.parts = {},
                   .shape = shape,
                   .begin = chain_begin(repetition, shape),
                   .reads = chain_reads(question.memory),
                   .end = nullptr};
    std::ranges::copy(parts->parts, chain.parts);
    return follow_once(chain);
  };
  return time_repetitions(
      world, question.repetitions, [&] { parts->prepare(); }, measure);
}

}  // namespace plait
