#include "plait/nn/operations/torch_device.h"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <string>

#include "plait/base/error.h"
#include "plait/base/gpu.h"

namespace plait {
namespace {

// Keeps warnings, instead of printing them.
struct KeptWarnings : c10::WarningHandler {
  void process(const c10::Warning& warning) override {
    text += (text.empty() ? "" : "; ") + warning.msg();
  }
  std::string text;
};

// Throws unless libtorch can use a GPU. Why it cannot, it tells in a warning alone.
void require_torch_gpu() {
  KeptWarnings kept;
  const c10::WarningUtils::WarningHandlerGuard guard(&kept);
  const bool usable = at::globalContext().hasCUDA();
  require<UsageError>(
      usable, "libtorch {} can use none of the {} GPUs of this host{}", TORCH_VERSION, gpu_count(),
      kept.text.empty() ? "; install a driver as new as its CUDA" : ": " + kept.text);
}

// libtorch's kernels register themselves as the library is loaded; nothing is linked. It is found
// beside the libtorch that this program runs with.
void load_torch_cuda() {
  require<UsageError>(dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr,
                      "the libtorch of this program has no CUDA part; install torch {} with CUDA "
                      "from PyPI: pip install torch=={}.{}.{}",
                      TORCH_VERSION, TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
  require_torch_gpu();
  at::globalContext().lazyInitDevice(at::kCUDA);
  set_gpu_cache_release([] { at::getDeviceAllocator(at::kCUDA)->emptyCache(); });
}

// Lets `second` go on when the work that `first` has been given is done.
void follow(const c10::Stream& first, const c10::Stream& second) {
  if (first == second) return;
  c10::Event done(first.device_type());
  done.record(first);
  done.block(second);
}

}  // namespace

torch::Device torch_device(bool gpu) {
  if (!gpu) return torch::kCPU;
  static const bool loaded = (load_torch_cuda(), true);
  static_cast<void>(loaded);
  const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(current_gpu()));
  c10::impl::VirtualGuardImpl(torch::kCUDA).setDevice(device);
  return device;
}

void* current_stream(const torch::Device& device) {
  if (!device.is_cuda()) return nullptr;
  return current_torch_stream(device).native_handle();
}

c10::Stream current_torch_stream(const torch::Device& device) {
  return c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(device);
}

c10::Stream work_stream(const torch::Device& device) {
  const c10::impl::VirtualGuardImpl gpu(torch::kCUDA);
  const c10::Stream current = gpu.getStream(device);
  return current == gpu.getDefaultStream(device) ? gpu.getStreamFromGlobalPool(device) : current;
}

c10::Stream beside(const c10::Stream& stream) {
  const c10::impl::VirtualGuardImpl gpu(torch::kCUDA);
  for (;;) {  // the pool gives its streams in turn
    const c10::Stream other = gpu.getStreamFromGlobalPool(stream.device(), true);
    if (other != stream) return other;
  }
}

StreamOrder::StreamOrder(const c10::Stream& work)
    : here_(current_torch_stream(work.device())), work_(work) {
  follow(here_, work_);
}

StreamOrder::~StreamOrder() {
  try {
    follow(work_, here_);
  } catch (const std::exception&) {
    // The GPU has failed; the next wait for it throws.
  }
}

BackwardHere::BackwardHere()
    : before_(c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

BackwardHere::~BackwardHere() {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(before_);
}

}  // namespace plait
