// The heap's memory from NVSHMEM. A peer's part is reached by its address (nvshmem_ptr), so that
// kernels and copies are those of the other transport: over NVLink or PCIe of one host, or over an
// NVLink that spans hosts. Peers without an address are refused. NVSHMEM's device functions, which
// find peers by themselves, may read it too.
#include <algorithm>
#include <exception>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/base/setting.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap_transports.cuh"
#include "plait/symmetric/nvshmem.h"

namespace plait {
namespace {

// NVSHMEM takes memory from the GPU in such pieces (NVSHMEM_CUMEM_GRANULARITY).
constexpr std::uint64_t kPiece = std::uint64_t{1} << 29;

class NvshmemHeap : public DeviceHeap {
 public:
  // Collective. Its memory is null on a rank to which NVSHMEM gives nothing: the ranks find out
  // together.
  NvshmemHeap(World& world, Nvshmem& nvshmem, std::size_t bytes)
      : DeviceHeap(bytes, world.size()),
        nvshmem_(nvshmem),
        taken_(std::max<std::uint64_t>(bytes, 1)),
        own_(nvshmem.allocate(taken_)) {}
  ~NvshmemHeap() override {
    if (own_ == nullptr) return;
    cudaDeviceSynchronize();  // nothing that was enqueued touches it any more
    // If this rank has failed, the others may never come to this; nor do those that got no memory.
    if (std::uncaught_exceptions() == exceptions_) nvshmem_.free(own_, taken_);
  }

  // Throws DoesNotFitError without memory.
  void require_memory() const {
    require<DoesNotFitError>(
        own_ != nullptr,
        "NVSHMEM does not give {}; its own message is above; where it makes its whole heap at its "
        "start, NVSHMEM_SYMMETRIC_SIZE is its size",
        format_bytes(taken_));
  }
  void clear() {
    check_cuda(cudaMemset(own_, 0, taken_), "the symmetric heap");
    check_cuda(cudaDeviceSynchronize(), "the symmetric heap");
  }
  void find_parts(const World& world) {
    for (int peer = 0; peer < world.size(); ++peer) {
      std::byte* const part = peer == world.rank() ? own_ : nvshmem_.address(own_, peer);
      require(part != nullptr,
              "the memory of rank {} cannot be mapped on this GPU: it is on a host, or a GPU, that "
              "no NVLink or PCIe joins with this one, and {} goes by addresses "
              "only; choose GPUs that reach each other",
              world.number_of(peer), setting("transport", "nvshmem"));
      parts_[static_cast<std::size_t>(peer)] = part;
    }
  }

 private:
  Nvshmem& nvshmem_;
  const std::uint64_t taken_;
  std::byte* const own_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

void require_nvshmem_room(World& world, std::size_t bytes, std::size_t held) {
  // Ranks that share a GPU would have NVSHMEM put names into /dev/shm, the same ones for each job.
  const auto sharers = gpu_sharers(world);
  for (std::size_t rank = 0; rank < sharers.size(); ++rank)
    require_on_all<UsageError>(
        sharers[rank] == 1,
        "NVSHMEM needs one GPU per rank, but {} ranks share the GPU of rank {}; use {}",
        sharers[rank], world.number_of(static_cast<int>(rank)), setting("transport", "cuda"));
  const std::uint64_t idle = Nvshmem::join(world).idle() + held;
  const auto ask = [&] {
    const std::uint64_t free = gpu_free_memory((Bytes(bytes) + kPiece).value);
    const std::uint64_t fresh = free > kPiece ? free - kPiece : 0;
    return MemoryRequest{bytes, std::max(fresh, idle + 1), 1};
  };
  agree_on_size(world, ask, "a GPU");
}

std::unique_ptr<DeviceHeap> make_nvshmem_heap(World& world, std::size_t bytes) {
  Nvshmem& nvshmem = Nvshmem::join(world);
  auto heap = std::make_unique<NvshmemHeap>(world, nvshmem, bytes);
  on_all_or_none(world, [&] {
    heap->require_memory();
    heap->clear();
    heap->find_parts(world);
  });
  return heap;
}

}  // namespace plait
