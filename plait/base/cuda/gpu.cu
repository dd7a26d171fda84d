#include <dlfcn.h>
#include <fmt/core.h>

#include <atomic>
#include <cstring>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"

namespace plait {
namespace {

// The functions of the driver's management library that are used here. The library comes with the
// driver, but its header comes with a part of CUDA that is often not installed.
class Nvml {
 public:
  Nvml() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    int (*init)() = nullptr;
    find(init, "nvmlInit_v2");
    find(shutdown_, "nvmlShutdown");
    find(by_pci_, "nvmlDeviceGetHandleByPciBusId_v2");
    find(link_state_, "nvmlDeviceGetNvLinkState");
    find(fields_, "nvmlDeviceGetFieldValues");
    find(generation_, "nvmlDeviceGetMaxPcieLinkGeneration");
    find(lanes_, "nvmlDeviceGetMaxPcieLinkWidth");
    works_ = init != nullptr && by_pci_ != nullptr && init() == 0;
  }
  ~Nvml() {
    if (works_ && shutdown_ != nullptr) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void find_link(Gpu& gpu, int index) const {
    char address[32] = {};
    Device device = nullptr;
    if (!works_ || cudaDeviceGetPCIBusId(address, sizeof address, index) != cudaSuccess ||
        by_pci_(address, &device) != 0)
      return;
    for (unsigned link = 0; link_state_ != nullptr && link < kMostLinks; ++link) {
      int up = 0;
      gpu.links += link_state_(device, link, &up) == 0 && up == 1;
    }
    if (gpu.links > 0) {
      Field speed{};
      speed.id = kLinkSpeed;
      const bool known = fields_ != nullptr && fields_(device, 1, &speed) == 0 &&
                         speed.status == 0 && speed.value.narrow > 0;
      gpu.link = known ? fmt::format("NVLink, {} x {:.1f} GB/s", gpu.links,
                                     static_cast<double>(speed.value.narrow) / 1e3)
                       : fmt::format("NVLink, {} links", gpu.links);
      return;
    }
    unsigned generation = 0, lanes = 0;
    if (generation_ != nullptr && lanes_ != nullptr && generation_(device, &generation) == 0 &&
        lanes_(device, &lanes) == 0)
      gpu.link = fmt::format("PCIe {} x{}", generation, lanes);
  }

 private:
  static constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS
  static constexpr unsigned kLinkSpeed = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON: MB/s
  using Device = void*;
  struct Field {  // nvmlFieldValue_t
    unsigned id, scope;
    long long time, latency;
    unsigned type;
    int status;
    union {
      unsigned narrow;
      unsigned long long wide;
    } value;
  };

  int (*shutdown_)() = nullptr;
  int (*by_pci_)(const char*, Device*) = nullptr;
  int (*link_state_)(Device, unsigned, int*) = nullptr;
  int (*fields_)(Device, int, Field*) = nullptr;
  int (*generation_)(Device, unsigned*) = nullptr;
  int (*lanes_)(Device, unsigned*) = nullptr;
  bool works_ = false;
};

}  // namespace

bool built_with_cuda() { return true; }

int gpu_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::vector<Gpu> list_gpus() {
  const int count = gpu_count();
  std::vector<Gpu> gpus;
  if (count == 0) return gpus;
  const Nvml nvml;
  const int current = current_gpu();
  for (int g = 0; g < count; ++g) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, g), "a GPU's properties");
    Gpu gpu;
    gpu.name = properties.name, gpu.major = properties.major, gpu.minor = properties.minor;
    check_cuda(cudaSetDevice(g), "a GPU");
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "a GPU's memory");
    gpu.memory = total, gpu.free = free;
    for (int peer = 0; peer < count; ++peer) {
      int reaches = peer == g;
      if (peer != g) check_cuda(cudaDeviceCanAccessPeer(&reaches, g, peer), "peer access");
      gpu.reaches.push_back(reaches != 0);
    }
    nvml.find_link(gpu, g);
    gpus.push_back(std::move(gpu));
  }
  check_cuda(cudaSetDevice(current), "a GPU");
  return gpus;
}

void use_gpu(int index) {
  const int count = gpu_count();
  require<UsageError>(index >= 0 && index < count, "GPU {} is not there: this host has {}", index,
                      count);
  check_cuda(cudaSetDevice(index), "a GPU");
  check_cuda(cudaFree(nullptr), "a GPU");  // makes its context now
}

int current_gpu() {
  int index = 0;
  check_cuda(cudaGetDevice(&index), "the current GPU");
  return index;
}

namespace {

struct MemoryInfo {
  std::size_t free = 0, total = 0;
};
MemoryInfo memory_info() {
  MemoryInfo info;
  check_cuda(cudaMemGetInfo(&info.free, &info.total), "the GPU's memory");
  return info;
}

}  // namespace

std::uint64_t gpu_free_memory(std::uint64_t wanted) {
  if (memory_info().free < wanted) release_gpu_caches();
  return memory_info().free;
}

std::uint64_t gpu_used_memory() {
  const MemoryInfo info = memory_info();
  return info.total - info.free;
}

namespace {

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "a GPU's properties");
  return properties;
}

GpuId id_of(int index) {
  const cudaDeviceProp properties = properties_of(index);
  GpuId id{};
  static_assert(sizeof properties.uuid.bytes == sizeof id);
  std::memcpy(id.data(), properties.uuid.bytes, sizeof id);
  return id;
}

}  // namespace

GpuId current_gpu_id() { return id_of(current_gpu()); }
std::string current_gpu_name() { return properties_of(current_gpu()).name; }

int gpu_of(const GpuId& id) {
  for (int index = 0; index < gpu_count(); ++index)
    if (id_of(index) == id) return index;
  return -1;
}

bool gpu_reaches(const GpuId& other) {
  const int here = current_gpu();
  for (int index = 0; index < gpu_count(); ++index) {
    if (index == here || id_of(index) != other) continue;
    int reaches = 0;
    check_cuda(cudaDeviceCanAccessPeer(&reaches, here, index), "peer access");
    return reaches != 0;
  }
  return true;
}

namespace {

__global__ void answer_kernel(int* answer) { *answer = 42; }

}  // namespace

std::string gpu_kernel_fault(int index) {
  const int before = current_gpu();
  std::string fault;
  try {
    use_gpu(index);
    const DeviceArray<int> answer(std::vector{0});
    answer_kernel<<<1, 1>>>(const_cast<int*>(answer.data()));
    check_cuda(cudaGetLastError(), "a kernel of this build");
    if (answer.to_host()[0] != 42) fault = "a kernel of this build gives a wrong answer";
  } catch (const Error& error) {
    fault = error.what();
  }
  cudaSetDevice(before);
  return fault;
}

namespace {
std::atomic<void (*)()> cache_release = nullptr;
}

void release_gpu_caches() {
  if (void (*const release)() = cache_release) release();
  trim_gpu_pool();
}

void set_gpu_cache_release(void (*release)()) { cache_release = release; }

void wait_for_gpu() { check_cuda(cudaDeviceSynchronize(), "work on the GPU"); }

}  // namespace plait
