#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/measure/cuda/message_bench.h"

namespace plait {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

__global__ void begin_search(const std::uint64_t* vertices, std::uint64_t count, std::uint64_t own,
                             std::uint32_t* slots, std::uint32_t* marks) {
  const std::uint64_t s = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (s < count) slots[s] = static_cast<std::uint32_t>(vertices[s]);
  const unsigned own_marks = __ballot_sync(kAll, s < own);
  if (s < count && s % 32 == 0) marks[s / 32] = own_marks;
}

// The edges of own rows, as in EdgeRows.
struct Edges {
  const EdgeOffset *begin, *end;
  const Slot* columns;
};

// A warp has the rows of one word of marks, and its lanes the edges of one row.
__global__ void offer_labels(Edges edges, std::uint64_t words, std::uint64_t own,
                             const std::uint32_t* before, std::uint32_t* slots,
                             std::uint32_t* marks) {
  const std::uint64_t w = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / kWarp;
  if (w >= words) return;
  std::uint32_t bits = before[w];
  if (w == own / 32) bits &= (1u << own % 32) - 1;
  for (; bits != 0; bits &= bits - 1) {
    const std::uint64_t row =
        w * 32 + static_cast<std::uint64_t>(__ffs(static_cast<int>(bits)) - 1);
    const std::uint32_t label = *const_cast<const volatile std::uint32_t*>(slots + row);
    const EdgeOffset end = edges.end[row];
    for (EdgeOffset e = edges.begin[row] + threadIdx.x % kWarp; e < end; e += kWarp) {
      const Slot to = edges.columns[e];
      if (label < atomicMin(slots + to, label)) atomicOr(marks + to / 32, 1u << to % 32);
    }
  }
}

class GpuSearch : public ComponentSearch {
 public:
  GpuSearch(Exchange& exchange, std::uint64_t own)
      : ComponentSearch(exchange.make_messages(Direction::along)),
        edges_(exchange.edges(Direction::along)),
        vertices_(exchange.vertices(Direction::along)),
        own_(own),
        slots_(vertices_.size()),
        marks_(mark_words(vertices_.size())),
        before_(marks_.size()) {}

  std::vector<std::uint32_t> labels() const override {
    std::vector<std::uint32_t> labels = slots_.to_host();
    labels.resize(own_);
    return labels;
  }

 protected:
  void begin() override {
    if (vertices_.empty()) return;
    begin_search<<<blocks_for(vertices_.size()), kThreads>>>(vertices_.data(), vertices_.size(),
                                                             own_, slots_.data(), marks_.data());
    check_cuda(cudaGetLastError(), "a search");
  }

  void offer() override {
    if (vertices_.empty()) return;
    std::swap(marks_, before_);
    check_cuda(cudaMemsetAsync(marks_.data(), 0, marks_.size() * sizeof(std::uint32_t)),
               "a search");
    const std::uint64_t words = mark_words(own_);
    if (words == 0) return;
    offer_labels<<<blocks_for(words * kWarp), kThreads>>>(
        {edges_.begin.data(), edges_.end.data(), edges_.columns}, words, own_, before_.data(),
        slots_.data(), marks_.data());
    check_cuda(cudaGetLastError(), "a search");
  }

  std::span<std::uint32_t> slots() override { return {slots_.data(), slots_.size()}; }
  SlotMarks marks() override { return {marks_.data(), marks_.size()}; }

 private:
  const EdgeRows edges_;
  const std::span<const std::uint64_t> vertices_;
  const std::uint64_t own_;
  DeviceArray<std::uint32_t> slots_, marks_, before_;
};

}  // namespace

std::unique_ptr<ComponentSearch> make_gpu_search(Exchange& exchange, std::uint64_t own) {
  return std::make_unique<GpuSearch>(exchange, own);
}

}  // namespace plait
