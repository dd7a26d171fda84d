#include "plait/measure/read_chain.h"

#include <algorithm>
#include <memory>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/setting.h"
#include "plait/base/timer.h"
#include "plait/measure/cuda/read_chain.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/heap.h"
#include "plait/world/gather.h"

namespace plait {

ChainShape chain_shape(std::uint64_t bytes, std::uint64_t parts) {
  ChainShape shape{.parts = parts};
  while (shape.words() * sizeof(std::uint64_t) < bytes) ++shape.shift;
  return shape;
}

std::uint64_t chain_reads(ChainMemory memory) {
  return memory == ChainMemory::managed ? 10'000 : 100'000;
}

std::uint64_t chain_begin(int repetition, const ChainShape& shape) {
  return chain_word(~static_cast<std::uint64_t>(repetition)) % shape.words();
}

void check_chain(std::uint64_t begin, std::uint64_t reads, const ChainShape& shape,
                 std::uint64_t end) {
  const std::uint64_t wanted = follow_chain(begin, reads, shape.words(), chain_word);
  require<MismatchError>(end == wanted, "{} reads end at word {}, not at {}", reads, end, wanted);
}

std::vector<double> time_repetitions(World& world, int repetitions,
                                     const std::function<void()>& prepare,
                                     const std::function<double(int repetition)>& follow) {
  std::vector<double> ms;
  for (int r = -1; r < repetitions; ++r) {
    prepare();
    double mine = 0;
    on_all_or_none(world, [&] {
      if (world.rank() == 0) mine = follow(r);
    });
    if (r >= 0) ms.push_back(largest_of_all(world, mine));
  }
  std::ranges::sort(ms);
  return ms;
}

namespace {

void write_words(std::uint64_t* to, std::uint64_t first, std::uint64_t count) {
  parallel_blocks(count, 1 << 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) to[i] = chain_word(first + i);
  });
}

// The words of all parts, as rank 0 reads them.
class ChainWords {
 public:
  ChainWords(World& world, const ChainQuestion& question, const ChainShape& shape) : shape_(shape) {
    const std::uint64_t part = std::uint64_t{1} << shape.shift;
    if (question.memory == ChainMemory::own) {
      on_all_or_none(world, [&] {
        if (world.rank() != 0) return;
        require_memory(part * sizeof(std::uint64_t), "the memory that is read");
        own_ = Buffer<std::uint64_t>(part);
      });
      write_words(own_.data(), 0, own_.size());
      parts_.push_back(own_.data());
      return;
    }
    heap_ = SymmetricHeap::create(world, part * sizeof(std::uint64_t));
    for (int rank = 0; rank < world.size(); ++rank)
      parts_.push_back(reinterpret_cast<std::uint64_t*>(heap_->part(rank).data()));
    const auto rank = static_cast<std::uint64_t>(world.rank());
    write_words(parts_[rank], rank * part, part);
    heap_->barrier();
  }

  std::uint64_t follow(std::uint64_t begin, std::uint64_t reads) const {
    const std::uint64_t mask = (std::uint64_t{1} << shape_.shift) - 1;
    return follow_chain(begin, reads, shape_.words(), [&](std::uint64_t place) {
      return parts_[place >> shape_.shift][place & mask];
    });
  }

 private:
  const ChainShape shape_;
  Buffer<std::uint64_t> own_;
  std::unique_ptr<SymmetricHeap> heap_;
  std::vector<std::uint64_t*> parts_;
};

}  // namespace

std::vector<double> time_read_chain(World& world, const ChainQuestion& question) {
  if (question.gpus) return time_gpu_read_chain(world, question);
  require<UsageError>(question.memory != ChainMemory::managed, "unified memory is of GPUs; add {}",
                      setting("gpus"));
  const ChainShape shape = chain_shape(
      question.bytes,
      question.memory == ChainMemory::own ? 1 : static_cast<std::uint64_t>(world.size()));
  const ChainWords words(world, question, shape);
  const std::uint64_t reads = chain_reads(question.memory);
  const auto follow = [&](int repetition) {
    const std::uint64_t begin = chain_begin(repetition, shape);
    const Stopwatch watch;
    const std::uint64_t end = words.follow(begin, reads);
    const double ms = watch.seconds() * 1e6 / static_cast<double>(reads);
    check_chain(begin, reads, shape, end);
    return ms;
  };
  return time_repetitions(
      world, question.repetitions, [] {}, follow);
}

}  // namespace plait
