// Aggregation on a GPU of rows in the host's memory: copied there and back.
#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"

namespace plait {
namespace {

class OnHostMemory : public Aggregator {
 public:
  explicit OnHostMemory(std::unique_ptr<GpuAggregator> gpu) : gpu_(std::move(gpu)) {}

  void reserve(std::uint64_t width) override { gpu_->reserve(width); }
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    run(&Aggregator::forward, s, x, y, width);
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    run(&Aggregator::backward, s, dy, dx, width);
  }
  void over_edges(const float* rows, const EdgeOperation& operation) override {
    const auto* const extremum = std::get_if<ExtremumForward>(&operation);
    require<UsageError>(
        extremum != nullptr && extremum->ties == nullptr,
        "among operations over edges, only extrema take arrays in the host's memory");
    const DeviceArray<float> in(std::span(rows, own() * extremum->width));
    ExtremumForward there = *extremum;
    DeviceArray<float> out(in.size());
    there.y = out.data();
    gpu_->over_edges(in.data(), there);
    take(out, extremum->y);
  }
  void check() const override { gpu_->check(); }
  ExchangeCost cost() const override { return gpu_->cost(); }
  std::uint64_t own() const override { return gpu_->own(); }
  EdgeOffset edges() const override { return gpu_->edges(); }
  std::span<const float> degree() const override { return gpu_->degree(); }
  std::vector<float> edge_counts() const override { return gpu_->edge_counts(); }

 private:
  using Sum = void (Aggregator::*)(const Scaling&, const float*, float*, std::uint64_t);

  void run(Sum sum, const Scaling& s, const float* x, float* y, std::uint64_t width) {
    const auto there = [&](const float* values, std::uint64_t size) {
      return DeviceArray<float>(std::span(values, values == nullptr ? 0 : size));
    };
    const DeviceArray<float> in = there(x, own() * width);
    const DeviceArray<float> pre = there(s.pre, own()), post = there(s.post, own());
    DeviceArray<float> out(own() * width);
    (gpu_.get()->*sum)({s.pre == nullptr ? nullptr : pre.data(),
                        s.post == nullptr ? nullptr : post.data(), s.weighted},
                       in.data(), out.data(), width);
    take(out, y);
  }
  void take(const DeviceArray<float>& out, float* y) {
    gpu_->cost();  // waits, and throws if a wait on the GPU has failed
    if (out.size() > 0) copy_to_host(y, out.data(), out.size() * sizeof(float));
  }

  std::unique_ptr<GpuAggregator> gpu_;
};

}  // namespace

std::unique_ptr<Aggregator> on_host_memory(std::unique_ptr<GpuAggregator> aggregator) {
  return std::make_unique<OnHostMemory>(std::move(aggregator));
}

}  // namespace plait
