// When the parts of a step ran on the GPU: kernels of one thread note the time before and after.
// Their clock is the host's, so it is the same on all GPUs of a host, to about a microsecond.
#pragma once

#include <string>
#include <vector>

#include "plait/base/cuda.h"
#include "plait/base/trace.h"

namespace plait {

class DeviceTrace {
 public:
  DeviceTrace();

  // Notes from its making to its end what the stream is given in between. Nothing without a trace.
  class Span {
   public:
    // Named "NAME NUMBER", in the lane.
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

  // Waits for the GPU.
  std::vector<TraceSpan> spans() const;

 private:
  static constexpr std::size_t kMost = 1024;
  void note(std::size_t at, cudaStream_t stream);

  DeviceArray<std::uint64_t> times_;  // begin and end of each
  std::vector<TraceSpan> spans_;
};

}  // namespace plait
