#include "plait/nn/training/recorded.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdio>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

// Returns libtorch's allocator, used by its virtual functions alone: its CUDA part is not linked.
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

// A recorded graph. The memory that its kernels work on is a pool of libtorch's that nothing but
// graphs takes from, for as long as one of them lives.
struct Recorder::Graph {
  Graph(const torch::Device& device, std::uint64_t pool_number, const std::function<void()>& work)
      : Graph(device, pool_number) {  // from here on the destructor frees what there is
    const auto stream = static_cast<cudaStream_t>(current_stream(device));
    {
      Capture capture(*this, stream);
      work();
      capture.end();
    }
    // Among branches that run beside each other, rows for other GPUs may go first.
    check_cuda(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority),
               "recording");
    check_cuda(cudaGraphUpload(executable, stream), "recording");  // takes its memory now
  }
  ~Graph() {
    cudaDeviceSynchronize();
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (in_pool) allocator().releasePool(index, pool);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

 private:
  // The pool's number is of a kind of its own: libtorch's pools have a 0 in one place or the other.
  Graph(const torch::Device& device, std::uint64_t pool_number)
      : index(device.index()), pool(pool_number, pool_number) {}

  // While it lives, work that this thread enqueues on the stream is recorded, and libtorch's memory
  // for it comes from the pool. An exception meanwhile leaves the stream as it was.
  class Capture {
   public:
    Capture(Graph& to, cudaStream_t stream) : to_(to), stream_(stream) {
      allocator().beginAllocateToPool(to_.index, to_.pool,
                                      [stream](cudaStream_t other) { return other == stream; });
      to_.in_pool = true;
      const cudaError_t begun = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
      under_way_ = begun == cudaSuccess;
      if (!under_way_) allocator().endAllocateToPool(to_.index, to_.pool);
      check_cuda(begun, "recording");
    }
    ~Capture() {
      if (under_way_) {
        cudaStreamEndCapture(stream_, &to_.graph);
        cudaGetLastError();  // a broken recording is no failure of later work
      }
      allocator().endAllocateToPool(to_.index, to_.pool);
    }
    void end() {
      under_way_ = false;
      check_cuda(cudaStreamEndCapture(stream_, &to_.graph), "recording");
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

   private:
    Graph& to_;
    cudaStream_t stream_;
    bool under_way_ = false;
  };

 public:
  c10::DeviceIndex index;
  c10::MempoolId_t pool;
  bool in_pool = false;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

namespace {

std::uint64_t next_pool() {
  static std::uint64_t last = 0;
  return ++last;
}

}  // namespace

Recorder::Recorder(GraphHandle& graph, bool wanted)
    : handle_(graph), possible_(wanted && !profiling()), pool_(next_pool()) {}

Recorder::~Recorder() = default;

void Recorder::run(Piece piece, const std::function<void()>& work) {
  Recorded& recorded = pieces_.at(piece);
  if (possible_ && !recorded.graph && ++recorded.calls > kCallsBefore) record(recorded, work);
  if (!recorded.graph) return work();
  if (recorded.steps > 0) handle_.replay(recorded.steps);
  auto* const stream = static_cast<cudaStream_t>(current_stream(handle_.device()));
  check_cuda(cudaGraphLaunch(recorded.graph->executable, stream), "replaying work on the GPU");
}

void Recorder::record(Recorded& piece, const std::function<void()>& work) {
  // Gives back blocks of the calls before: a recording takes none of them.
  release_gpu_caches();
  bool fits = true;
  try {
    const std::uint32_t before = handle_.recorded_steps();
    piece.graph = std::make_unique<Graph>(handle_.device(), pool_, work);
    piece.steps = handle_.recorded_steps() - before;
  } catch (const c10::OutOfMemoryError&) {
    fits = false;
  } catch (const DoesNotFitError&) {
    fits = false;
  }
  if (all_can_record(handle_.world(), fits)) return;
  // A rank that replays would wait for one that does not: so none replays.
  possible_ = false;
  for (Recorded& each : pieces_) each.graph.reset();
  release_gpu_caches();
}

bool all_can_record(World& world, bool fits) {
  const std::string failure = first_failure(
      world, fits ? ""
                  : fmt::format("recording a step needs more memory than the {} that are free on "
                                "the GPU",
                                format_bytes(gpu_free_memory())));
  if (failure.empty()) return true;
  if (world.rank() != 0) return false;
  // Training goes on if stderr is a terminal that has been closed.
  const std::string text =
      fmt::format("plait: warning: {}; steps go on unrecorded, and take longer\n", failure);
  std::fputs(text.c_str(), stderr);
  return false;
}

}  // namespace plait
