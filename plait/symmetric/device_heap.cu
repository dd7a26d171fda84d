#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/descriptor_exchange.h"
#include "plait/symmetric/device_heap_cuda.h"
#include "plait/world/gather.h"

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

// A GPU as all processes of the host know it.
struct GpuId {
  char bytes[16];
  friend bool operator==(const GpuId& a, const GpuId& b) {
    return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
  }
};

int this_gpu() {
  int gpu = 0;
  check_cuda(cudaGetDevice(&gpu), "the GPU");
  return gpu;
}

}  // namespace

std::uint64_t ranks_on_this_gpu(World& world) {
  cudaDeviceProp device{};
  check_cuda(cudaGetDeviceProperties(&device, this_gpu()), "a GPU's properties");
  GpuId mine{};
  std::memcpy(mine.bytes, device.uuid.bytes, sizeof mine.bytes);
  return static_cast<std::uint64_t>(std::ranges::count(gather_values(world, mine), mine));
}

DeviceHeap::DeviceHeap(World& world, std::size_t bytes)
    : bytes_(bytes), parts_(static_cast<std::size_t>(world.size())) {
  require<UsageError>(world.one_host(),
                      "the symmetric heap needs all ranks on one host, but they are on several");
  const int gpu = this_gpu();
  std::size_t free = 0, total = 0, page = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "the GPU's memory");
  agree_on_size(world, {bytes, free, ranks_on_this_gpu(world)}, "a GPU");

  std::string failure;
  Descriptor descriptor;
  Part& own = parts_[static_cast<std::size_t>(world.rank())];
  try {
    const CUmemAllocationProp p = properties(gpu);
    driver().check(driver().granularity(&page, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "the GPU's pages");
    mapped_ = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    unsigned long long memory = 0;
    driver().check(driver().create(&memory, mapped_, &p, 0), "memory for the symmetric heap");
    map(own, memory, gpu);
    check_cuda(cudaMemset(own.address, 0, mapped_), "the symmetric heap");
    check_cuda(cudaDeviceSynchronize(), "the symmetric heap");
    int number = -1;
    driver().check(
        driver().export_handle(&number, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "sharing the symmetric heap");
    descriptor = Descriptor(number);
  } catch (const Error& error) {
    failure = error.what();
  }
  const auto agree = [&] {
    try {
      agree_on_failure(world, failure);
    } catch (...) {
      release();
      throw;
    }
  };
  agree();
  const auto descriptors = exchange_descriptors(world, descriptor);
  try {
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank()) continue;
      unsigned long long memory = 0;
      const auto number =
          static_cast<std::uintptr_t>(descriptors[static_cast<std::size_t>(rank)].number());
      const std::string what = fmt::format("mapping the memory of rank {}", rank);
      driver().check(driver().import_handle(&memory, reinterpret_cast<void*>(number),
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                     what);
      map(parts_[static_cast<std::size_t>(rank)], memory, gpu);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  agree();
}

void DeviceHeap::map(Part& part, unsigned long long memory, int gpu) const {
  part.memory = memory;
  CUdeviceptr address = 0;
  driver().check(driver().reserve(&address, mapped_, 0, 0, 0), "addresses on the GPU");
  part.address = reinterpret_cast<std::byte*>(address);
  driver().check(driver().map(address, mapped_, 0, memory, 0), "mapping memory on the GPU");
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = gpu;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  driver().check(driver().set_access(address, mapped_, &access, 1),
                 "access to another GPU's memory");
}

void DeviceHeap::release() {
  for (Part& part : parts_) {
    if (part.address != nullptr) {
      const auto address = reinterpret_cast<CUdeviceptr>(part.address);
      driver().unmap(address, mapped_);
      driver().free_address(address, mapped_);
    }
    if (part.memory != 0) driver().release(part.memory);
    part = {};
  }
}

DeviceHeap::~DeviceHeap() {
  cudaDeviceSynchronize();  // nothing that was enqueued touches it any more
  release();
}

}  // namespace plait
