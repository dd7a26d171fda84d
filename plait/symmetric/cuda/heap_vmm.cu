// The heap's memory from CUDA's virtual memory management. Its descriptors travel as those of the
// heap on the CPU do (descriptor_exchange.h). It has no name anywhere and goes with the last
// process.
#include <cuda.h>

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/saturating.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap_transports.cuh"
#include "plait/symmetric/descriptor_exchange.h"

namespace plait {
namespace {

// The driver's functions, found through the runtime: nothing is linked that a machine without a
// driver lacks.
struct Driver {
  template <class Function>
  static void find(Function*& function, const char* name) {
    cudaDriverEntryPointQueryResult result{};
    void* entry = nullptr;
    check_cuda(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &result),
               "the GPU's driver");
    require(result == cudaDriverEntryPointSuccess, "the GPU's driver has no {}; update it", name);
    function = reinterpret_cast<Function*>(entry);
  }
  Driver() {
    find(error_name, "cuGetErrorName");
    find(granularity, "cuMemGetAllocationGranularity");
    find(create, "cuMemCreate");
    find(release, "cuMemRelease");
    find(export_handle, "cuMemExportToShareableHandle");
    find(import_handle, "cuMemImportFromShareableHandle");
    find(reserve, "cuMemAddressReserve");
    find(free_address, "cuMemAddressFree");
    find(map, "cuMemMap");
    find(unmap, "cuMemUnmap");
    find(set_access, "cuMemSetAccess");
  }
  void check(CUresult status, const std::string& what) const {
    if (status == CUDA_SUCCESS) return;
    const char* name = nullptr;
    error_name(status, &name);
    throw Error(fmt::format("{}: {}", what, name == nullptr ? "unknown error" : name));
  }

  decltype(cuGetErrorName)* error_name;
  decltype(cuMemGetAllocationGranularity)* granularity;
  decltype(cuMemCreate)* create;
  decltype(cuMemRelease)* release;
  decltype(cuMemExportToShareableHandle)* export_handle;
  decltype(cuMemImportFromShareableHandle)* import_handle;
  decltype(cuMemAddressReserve)* reserve;
  decltype(cuMemAddressFree)* free_address;
  decltype(cuMemMap)* map;
  decltype(cuMemUnmap)* unmap;
  decltype(cuMemSetAccess)* set_access;
};

const Driver& driver() {
  static const Driver instance;
  return instance;
}

CUmemAllocationProp properties(int gpu) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = gpu;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

class VmmHeap : public DeviceHeap {
 public:
  VmmHeap(std::size_t bytes, int ranks)
      : DeviceHeap(bytes, ranks), memory_(static_cast<std::size_t>(ranks)) {
    check_cuda(cudaGetDevice(&gpu_), "the GPU");
  }
  ~VmmHeap() override {
    cudaDeviceSynchronize();  // nothing that was enqueued touches it any more
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
      if (parts_[rank] != nullptr)
        driver().unmap(reinterpret_cast<CUdeviceptr>(parts_[rank]), mapped_);
      if (memory_[rank] != 0) driver().release(memory_[rank]);
    }
    if (addresses_ != 0) driver().free_address(addresses_, mapped_ * parts_.size());
  }

  // Makes this rank's part, zeroed. Returns a descriptor of it for the others.
  Descriptor make_part(int rank) {
    const CUmemAllocationProp p = properties(gpu_);
    std::size_t page = 0;
    driver().check(driver().granularity(&page, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "the GPU's pages");
    mapped_ = (std::max<std::size_t>(bytes_, 1) + page - 1) / page * page;
    driver().check(driver().reserve(&addresses_, mapped_ * parts_.size(), 0, 0, 0),
                   "addresses on the GPU");
    auto& memory = memory_[static_cast<std::size_t>(rank)];
    driver().check(driver().create(&memory, mapped_, &p, 0), "memory for the symmetric heap");
    map(rank);
    check_cuda(cudaMemset(part(rank), 0, mapped_), "the symmetric heap");
    check_cuda(cudaDeviceSynchronize(), "the symmetric heap");
    int number = -1;
    driver().check(
        driver().export_handle(&number, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "sharing the symmetric heap");
    return Descriptor(number);
  }

  // `number_of_rank`: in the whole world, for messages.
  void import_part(int rank, int number_of_rank, const Descriptor& descriptor) {
    const auto number = static_cast<std::uintptr_t>(descriptor.number());
    driver().check(driver().import_handle(&memory_[static_cast<std::size_t>(rank)],
                                          reinterpret_cast<void*>(number),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                   fmt::format("mapping the memory of rank {}", number_of_rank));
    map(rank);
  }

 private:
  void map(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const CUdeviceptr address = addresses_ + r * mapped_;
    driver().check(driver().map(address, mapped_, 0, memory_[r], 0), "mapping memory on the GPU");
    parts_[r] = reinterpret_cast<std::byte*>(address);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = gpu_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver().check(driver().set_access(address, mapped_, &access, 1),
                   "access to another GPU's memory");
  }

  int gpu_ = 0;
  std::size_t mapped_ = 0;     // bytes_ up to a whole number of the driver's pages
  CUdeviceptr addresses_ = 0;  // of the parts of all ranks, one after the other
  std::vector<CUmemGenericAllocationHandle> memory_;  // by rank
};

}  // namespace

void require_vmm_room(World& world, std::size_t bytes, std::size_t held) {
  require_on_all<UsageError>(
      world.one_host(), "the symmetric heap needs all ranks on one host, but they are on several");
  const std::uint64_t sharers = gpu_sharers(world)[static_cast<std::size_t>(world.rank())];
  const std::uint64_t wanted = bytes > held ? ((Bytes(bytes - held) + 1) * sharers).value : 0;
  const auto ask = [&] {
    return MemoryRequest{bytes, gpu_free_memory(wanted) + held * sharers, sharers};
  };
  agree_on_size(world, ask, "a GPU");
}

std::unique_ptr<DeviceHeap> make_vmm_heap(World& world, std::size_t bytes) {
  std::unique_ptr<VmmHeap> heap;
  on_all_or_none(world, [&] { heap = std::make_unique<VmmHeap>(bytes, world.size()); });
  exchange_descriptors(
      world, [&] { return heap->make_part(world.rank()); },
      [&](int rank, const Descriptor& descriptor) {
        heap->import_part(rank, world.number_of(rank), descriptor);
      });
  return heap;
}

}  // namespace plait
