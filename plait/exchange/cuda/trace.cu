#include "plait/base/error.h"
#include "plait/exchange/cuda/trace.cuh"

namespace plait {
namespace {

__global__ void note_time(std::uint64_t* at) {
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(*at));
}

}  // namespace

DeviceTrace::DeviceTrace() : times_(2 * kMost) {}

void DeviceTrace::note(std::size_t at, cudaStream_t stream) {
  note_time<<<1, 1, 0, stream>>>(times_.data() + at);
}

DeviceTrace::Span::Span(DeviceTrace* trace, const char* name, std::size_t number, const char* lane,
                        cudaStream_t stream)
    : trace_(trace), stream_(stream) {
  if (trace_ != nullptr && trace_->spans_.size() >= kMost) trace_ = nullptr;
  if (trace_ == nullptr) return;
  at_ = trace_->spans_.size();
  trace_->spans_.push_back({fmt::format("{} {}", name, number), lane, 0, 0});
  trace_->note(2 * at_, stream_);
}

DeviceTrace::Span::~Span() {
  if (trace_ != nullptr) trace_->note(2 * at_ + 1, stream_);
}

std::vector<TraceSpan> DeviceTrace::spans() const {
  const std::vector<std::uint64_t> times = times_.to_host();
  std::vector<TraceSpan> list = spans_;
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i].begin = times[2 * i], list[i].end = times[2 * i + 1];
  return list;
}

}  // namespace plait
