#include <algorithm>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap.cuh"
#include "plait/table/sharded/cuda/gpu_array.h"

namespace plait {
namespace {

class ReplicatedArray : public GpuArray {
 public:
  explicit ReplicatedArray(std::span<const std::byte> content) : memory_(content) {
    data_ = memory_.data();
  }
  ~ReplicatedArray() override { cudaDeviceSynchronize(); }

 private:
  DeviceArray<std::byte> memory_;
};

// The heap maps parts of whole pages one after the other.
class ShardedArray : public GpuArray {
 public:
  ShardedArray(World& world, std::span<const std::byte> content)
      : heap_(DeviceHeap::create(world, sharded_bytes(content.size(), world.size()),
                                 DeviceTransport::vmm)) {
    data_ = heap_->part(0);
    on_all_or_none(world, [&] {
      for (int rank = 0; rank < world.size(); ++rank)
        require(heap_->part(rank) == data_ + static_cast<std::size_t>(rank) * heap_->bytes(),
                "the GPU maps memory of several GPUs in pages larger than 2 MiB; use a copy of the "
                "array on each");
      const std::size_t first =
          std::min(static_cast<std::size_t>(world.rank()) * heap_->bytes(), content.size());
      const auto part = content.subspan(first, std::min(heap_->bytes(), content.size() - first));
      if (!part.empty()) copy_to_gpu(heap_->part(world.rank()), part.data(), part.size());
    });
  }

 private:
  std::unique_ptr<DeviceHeap> heap_;
};

}  // namespace

std::unique_ptr<GpuArray> GpuArray::replicated(std::span<const std::byte> content) {
  return std::make_unique<ReplicatedArray>(content);
}

std::unique_ptr<GpuArray> GpuArray::sharded(World& world, std::span<const std::byte> content) {
  return together(world, "while sharing an array out",
                  [&] { return std::make_unique<ShardedArray>(world, content); });
}

}  // namespace plait
