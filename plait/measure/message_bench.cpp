#include "plait/measure/message_bench.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kWords = 64;  // of marks, for a thread at once

// Sets the first bits, as many as there are own slots.
void mark_own(std::vector<std::uint32_t>& marks, std::uint64_t own) {
  std::ranges::fill(marks, 0);
  std::fill_n(marks.begin(), own / 32, ~std::uint32_t{0});
  if (own % 32 != 0) marks[own / 32] = (std::uint32_t{1} << own % 32) - 1;
}

class CpuSearch : public ComponentSearch {
 public:
  CpuSearch(Exchange& exchange, std::uint64_t own)
      : ComponentSearch(exchange.make_messages(Direction::along)),
        edges_(exchange.edges(Direction::along)),
        vertices_(exchange.vertices(Direction::along)),
        own_(own),
        slots_(vertices_.size()),
        marks_(mark_words(slots_.size())),
        before_(marks_.size()) {}

  std::vector<std::uint32_t> labels() const override {
    return {slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(own_)};
  }

 protected:
  void begin() override {
    std::ranges::copy(vertices_, slots_.begin());
    mark_own(marks_, own_);
  }

  void offer() override {
    std::swap(marks_, before_);
    std::ranges::fill(marks_, 0);
    parallel_blocks(mark_words(own_), kWords, [&](std::size_t begin, std::size_t end) {
      for (std::size_t w = begin; w < end; ++w)
        for (std::uint32_t bits = before_[w]; bits != 0; bits &= bits - 1)
          offer(w * 32 + static_cast<std::size_t>(std::countr_zero(bits)));
    });
  }

  std::span<std::uint32_t> slots() override { return slots_; }
  SlotMarks marks() override { return marks_; }

 private:
  void offer(std::size_t row) {
    const std::uint32_t label = std::atomic_ref(slots_[row]).load(std::memory_order_relaxed);
    for (EdgeOffset e = edges_.begin[row]; e < edges_.end[row]; ++e) {
      const Slot to = edges_.columns[e];
      std::atomic_ref<std::uint32_t> theirs(slots_[to]);
      std::uint32_t old = theirs.load(std::memory_order_relaxed);
      while (label < old && !theirs.compare_exchange_weak(old, label, std::memory_order_relaxed)) {
      }
      if (label < old)
        std::atomic_ref(marks_[to / 32])
            .fetch_or(std::uint32_t{1} << to % 32, std::memory_order_relaxed);
    }
  }

  const EdgeRows edges_;
  const std::span<const std::uint64_t> vertices_;
  const std::uint64_t own_;
  std::vector<std::uint32_t> slots_, marks_, before_;
};

}  // namespace

std::uint64_t ComponentSearch::run() {
  begin();
  for (std::uint64_t rounds = 1;; ++rounds) {
    offer();
    if (messages_->push(slots(), marks(), Merge::min).marked == 0) return rounds;
  }
}

std::unique_ptr<ComponentSearch> make_cpu_search(Exchange& exchange, std::uint64_t own) {
  return std::make_unique<CpuSearch>(exchange, own);
}

}  // namespace plait
