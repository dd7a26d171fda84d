// libtorch on GPUs. Its CUDA part is a library of its own, which is loaded only if a GPU is asked
// for: programs on the CPU start without it, and need no libtorch that has it.
#pragma once

#include <c10/core/DeviceGuard.h>
#include <torch/types.h>

namespace plait {

// Returns the CPU, or the current GPU (base/gpu.h), as libtorch names it.
//
// The first call for a GPU loads the CUDA part. It must come before any backward pass, because
// libtorch looks for that part once. Throws a UsageError that says what to install.
torch::Device torch_device(bool gpu);

// While it lives, this thread's work goes to the GPU of a device, if it is one. The caller's
// current GPU may be another; libtorch runs backward passes on threads of its own, which begin with
// GPU 0.
class OnGpuOf {
 public:
  explicit OnGpuOf(const torch::Device& device) {
    if (device.is_cuda()) guard_.reset_device(device);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

// Returns the cudaStream_t on which this thread's work on a tensor's device is enqueued; null on
// the CPU.
void* current_stream(const torch::Device& device);
// Returns the same stream as libtorch names it. The device must be a GPU.
c10::Stream current_torch_stream(const torch::Device& device);

// Returns the current stream of a GPU, or one of libtorch's pool if that is the default one, which
// cannot be recorded.
c10::Stream work_stream(const torch::Device& device);
// Returns another stream of libtorch's pool for the same GPU, whose kernels begin before those of
// the first one that wait for room: for short work on which the host waits beside long work.
c10::Stream beside(const c10::Stream& stream);

// Puts two streams of a GPU into one order: the work that `work` is given while this object lives
// comes after all work enqueued before on this thread's current stream, and before all that is
// enqueued there later. The host does not wait.
class StreamOrder {
 public:
  explicit StreamOrder(const c10::Stream& work);
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

 private:
  c10::Stream here_, work_;
};

// While it lives, backward passes of this thread run on it, rather than on a thread that libtorch
// has for each GPU, because collectives are called from one thread (world/world.h).
class BackwardHere {
 public:
  BackwardHere();
  ~BackwardHere();
  BackwardHere(const BackwardHere&) = delete;
  BackwardHere& operator=(const BackwardHere&) = delete;

 private:
  bool before_;
};

}  // namespace plait
