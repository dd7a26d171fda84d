// Notes when the parts of a step ran on the GPU: kernels of one thread write the time before and
// after each part. Their clock is the host's, so it is the same on all GPUs of a host, to about a
// microsecond.
#pragma once

#include <string>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/trace.h"

namespace plait {

// A list of at most 1,024 spans of time; later ones are dropped.
class DeviceTrace {
 public:
  // Takes the memory for the times on the current GPU. Throws DoesNotFitError.
  DeviceTrace();

  // Notes when the work that a stream is given during the life of this object begins and ends. Does
  // nothing if the trace is null.
  class Span {
   public:
    // The span is named "NAME NUMBER" and shown in the lane.
    Span(DeviceTrace* trace, const char* name, std::size_t number, const char* lane,
         cudaStream_t stream);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    DeviceTrace* trace_;
    std::size_t at_ = 0;
    cudaStream_t stream_;
  };

  // Waits for the GPU and returns all spans, with times in ns.
  std::vector<TraceSpan> spans() const;

 private:
  static constexpr std::size_t kMost = 1024;
  void note(std::size_t at, cudaStream_t stream);

  DeviceArray<std::uint64_t> times_;  // begin and end of each
  std::vector<TraceSpan> spans_;
};

}  // namespace plait
