#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "plait/base/cuda.h"
#include "plait/nn/gpu_torch.h"
#include "plait/nn/recorded.h"

namespace plait {
namespace {

constexpr int kCallsBefore = 2;

// libtorch's allocator, by its virtual functions alone: nothing of its CUDA part is linked.
c10::cuda::CUDACachingAllocator::CUDAAllocator& allocator() {
  return static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator&>(
      *c10::GetAllocator(torch::kCUDA));
}

c10::Stream exchanged(const torch::Device& device) {
  if (!device.is_cuda()) return c10::Stream(c10::Stream::DEFAULT, device);
  const c10::impl::VirtualGuardImpl gpu(torch::kCUDA);
  return gpu.exchangeStream(gpu.getStreamFromGlobalPool(device));
}

}  // namespace

OwnStream::OwnStream(const torch::Device& device) : before_(exchanged(device)) {}

OwnStream::~OwnStream() {
  if (before_.device().is_cuda()) c10::impl::VirtualGuardImpl(torch::kCUDA).exchangeStream(before_);
}

// A recorded graph, and the memory that its kernels work on: a pool of libtorch's that nothing else
// takes from, for as long as the graph lives.
struct Recorded::Graph {
  Graph(const torch::Device& device, const std::function<void()>& work)
      : index(device.index()), pool(next_pool()) {
    auto* const stream = static_cast<cudaStream_t>(current_stream(device));
    allocator().beginAllocateToPool(index, pool,
                                    [stream](cudaStream_t other) { return other == stream; });
    try {
      check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
      work();
      check_cuda(cudaStreamEndCapture(stream, &graph), "recording");
      // Of branches that run beside each other, one may go first: rows for other GPUs.
      check_cuda(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority),
                 "recording");
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      allocator().endAllocateToPool(index, pool);
      throw;
    }
    allocator().endAllocateToPool(index, pool);
  }
  ~Graph() {
    cudaDeviceSynchronize();
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    allocator().releasePool(index, pool);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Numbers of their own kind: libtorch's pools have a 0 in one place or the other.
  static c10::MempoolId_t next_pool() {
    static c10::CaptureId_t last = 0;
    return {++last, last};
  }

  c10::DeviceIndex index;
  c10::MempoolId_t pool;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

Recorded::Recorded(GraphHandle& graph) : handle_(graph) {}

Recorded::~Recorded() = default;

void Recorded::run(const std::function<void()>& work) {
  if (!handle_.recordable() || calls_ < kCallsBefore) {
    ++calls_;
    return work();
  }
  if (!graph_) {
    const std::uint32_t before = handle_.recorded_steps();
    graph_ = std::make_unique<Graph>(handle_.device(), work);
    steps_ = handle_.recorded_steps() - before;
  }
  handle_.replay(steps_);
  auto* const stream = static_cast<cudaStream_t>(current_stream(handle_.device()));
  check_cuda(cudaGraphLaunch(graph_->executable, stream), "replaying work on the GPU");
}

}  // namespace plait
