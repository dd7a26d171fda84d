#include "plait/nn/memory/tensor_trace.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "plait/base/memory.h"

namespace plait {
namespace {

// The notes of a trace. They live as long as a block that was taken meanwhile.
struct Notes {
  std::mutex mutex;
  TensorTrace trace;
  std::size_t blocks = 0;
  bool open = true;

  std::size_t taken(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    trace.events.push_back({blocks, bytes});
    return blocks++;
  }
  void given_back(std::size_t block) {
    const std::lock_guard lock(mutex);
    if (open) trace.events.push_back({block, 0});
  }
};

// Gives libtorch the memory that another allocator has, and notes it.
class NotingAllocator : public c10::Allocator {
 public:
  explicit NotingAllocator(c10::Allocator& from) : from_(from) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr memory = from_.allocate(bytes);
    if (bytes == 0) return memory;
    void* const data = memory.get();
    auto block = std::unique_ptr<Block>(new Block{std::move(memory), notes_, notes_->taken(bytes)});
    return {data, block.release(), &free, c10::DeviceType::CPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  Notes& notes() { return *notes_; }

 private:
  struct Block {
    c10::DataPtr memory;
    std::shared_ptr<Notes> notes;
    std::size_t number;
  };
  static void free(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    block->notes->given_back(block->number);
  }

  c10::Allocator& from_;
  const std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

// While it lives, another allocator is libtorch's allocator of the CPU.
class InsteadOf {
 public:
  InsteadOf(c10::Allocator& before, c10::Allocator& now) : before_(before) {
    c10::SetCPUAllocator(&now);
  }
  ~InsteadOf() { c10::SetCPUAllocator(&before_); }
  InsteadOf(const InsteadOf&) = delete;
  InsteadOf& operator=(const InsteadOf&) = delete;

 private:
  c10::Allocator& before_;
};

// The bytes of blocks alone.
class ExactMemory {
 public:
  void take(std::size_t block, std::uint64_t bytes) { held_ += blocks_[block] = bytes; }
  void give_back(std::size_t block) { held_ -= std::exchange(blocks_[block], 0); }
  std::uint64_t held() const { return held_; }

 private:
  std::map<std::size_t, std::uint64_t> blocks_;
  std::uint64_t held_ = 0;
};

// The CPU's memory. A large block has pages of its own, which go back with it. The allocator keeps
// small ones: each takes the smallest free piece that holds it, whose rest stays free, or else more
// of the system's memory, behind the last. Free pieces beside each other become one.
class HostMemory {
 public:
  void take(std::size_t block, std::uint64_t bytes) {
    const bool large = bytes > kKeptBlock;
    blocks_[block] = {large ? 0 : place_of(bytes), bytes};
    if (large) large_ += bytes;
  }
  void give_back(std::size_t block) {
    auto [begin, bytes] = std::exchange(blocks_[block], {});
    if (bytes > kKeptBlock) {
      large_ -= bytes;
    } else if (bytes > 0) {
      auto next = free_.lower_bound(begin);
      if (next != free_.end() && next->first == begin + bytes) {
        bytes += next->second;
        next = free_.erase(next);
      }
      if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin)
        std::prev(next)->second += bytes;
      else
        free_.emplace(begin, bytes);
    }
  }
  std::uint64_t held() const { return large_ + end_; }

 private:
  struct Block {
    std::uint64_t begin = 0, bytes = 0;
  };

  std::uint64_t place_of(std::uint64_t bytes) {
    auto best = free_.end();
    for (auto piece = free_.begin(); piece != free_.end(); ++piece)
      if (piece->second >= bytes && (best == free_.end() || piece->second < best->second))
        best = piece;
    if (best != free_.end()) {
      const auto [begin, found] = *best;
      free_.erase(best);
      if (found > bytes) free_.emplace(begin + bytes, found - bytes);
      return begin;
    }
    // The last piece grows if it is free.
    std::uint64_t begin = end_;
    if (!free_.empty() && std::prev(free_.end())->first + std::prev(free_.end())->second == end_) {
      begin = std::prev(free_.end())->first;
      free_.erase(std::prev(free_.end()));
    }
    end_ = begin + bytes;
    return begin;
  }

  std::map<std::size_t, Block> blocks_;
  std::map<std::uint64_t, std::uint64_t> free_;  // by begin: bytes
  std::uint64_t large_ = 0, end_ = 0;
};

// Follows the rules of libtorch's cache in c10/cuda/CUDACachingAllocator.h. Blocks of up to 1 MiB
// stand in segments of 2 MiB. A larger one stands in the smallest free piece of a segment that
// holds it, and the rest of the piece stays free if it is more than 1 MiB; else in a new segment.
// Free pieces beside each other become one. Segments stay.
class CachedMemory {
 public:
  void take(std::size_t block, std::uint64_t wanted) {
    const std::uint64_t bytes = (wanted + kUnit - 1) / kUnit * kUnit;
    if (bytes <= kMiB) {
      small_ += small_blocks_[block] = bytes;
      most_small_ = std::max(most_small_, small_);
      return;
    }
    Piece found = smallest_free(bytes);
    if (found.segment == nullptr) {
      segments_.push_back({{segment_bytes(bytes), kFree}});
      held_ += segment_bytes(bytes);
      found = {&segments_.back(), segments_.back().begin()};
    }
    const std::uint64_t rest = found.part->bytes - bytes;
    if (rest > kMiB) {
      found.segment->insert(std::next(found.part), {rest, kFree});
      found.part->bytes = bytes;
    }
    found.part->block = block;
    places_[block] = found;
  }
  void give_back(std::size_t block) {
    if (const auto small = small_blocks_.find(block); small != small_blocks_.end()) {
      small_ -= small->second;
      small_blocks_.erase(small);
      return;
    }
    const auto place = places_.extract(block).mapped();
    Segment* const segment = place.segment;
    auto part = place.part;
    part->block = kFree;
    const auto join = [&](auto first, auto second) {  // into the second
      if (first->block != kFree || second->block != kFree) return second;
      second->bytes += first->bytes;
      segment->erase(first);
      return second;
    };
    if (part != segment->begin()) part = join(std::prev(part), part);
    if (std::next(part) != segment->end()) join(part, std::next(part));
  }
  // Returns the bytes of all segments, free pieces included.
  std::uint64_t held() const {
    return held_ + (most_small_ + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
  }

 private:
  static constexpr std::uint64_t kUnit = 512, kMiB = std::uint64_t{1} << 20,
                                 kSmallSegment = 2 * kMiB;
  static constexpr std::size_t kFree = ~std::size_t{0};
  struct Part {
    std::uint64_t bytes;
    std::size_t block;
  };
  using Segment = std::list<Part>;
  struct Piece {
    Segment* segment = nullptr;
    Segment::iterator part = {};
  };

  static std::uint64_t segment_bytes(std::uint64_t bytes) {
    return bytes < 10 * kMiB ? 20 * kMiB
                             : (bytes + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
  }
  Piece smallest_free(std::uint64_t bytes) {
    Piece best;
    for (Segment& segment : segments_)
      for (auto part = segment.begin(); part != segment.end(); ++part)
        if (part->block == kFree && part->bytes >= bytes &&
            (best.segment == nullptr || part->bytes < best.part->bytes))
          best = {&segment, part};
    return best;
  }

  std::list<Segment> segments_;
  std::map<std::size_t, Piece> places_;
  std::map<std::size_t, std::uint64_t> small_blocks_;
  std::uint64_t held_ = 0, small_ = 0, most_small_ = 0;
};

// `bytes`: of each event's block.
template <class Memory>
WorkBytes replay(const TensorTrace& trace, const std::vector<std::uint64_t>& bytes) {
  Memory memory;
  WorkBytes work;
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    if (e == trace.kept_at) work.kept = memory.held();
    const auto& [block, size] = trace.events[e];
    if (size > 0)
      memory.take(block, bytes[e]);
    else
      memory.give_back(block);
    work.most = std::max(work.most, memory.held());
  }
  return work;
}

// Returns the value for `rows` on the line through two points.
std::uint64_t on_line(const Rehearsal& few, std::uint64_t at_few, const Rehearsal& more,
                      std::uint64_t at_more, std::uint64_t rows) {
  const double slope = (static_cast<double>(at_more) - static_cast<double>(at_few)) /
                       (static_cast<double>(more.rows) - static_cast<double>(few.rows));
  return whole_bytes(
      std::max(0.0, static_cast<double>(at_few) +
                        slope * (static_cast<double>(rows) - static_cast<double>(few.rows)) + 0.5));
}

bool same_course(const TensorTrace& a, const TensorTrace& b) {
  return a.kept_at == b.kept_at &&
         std::ranges::equal(a.events, b.events, [](const auto& x, const auto& y) {
           return x.block == y.block && (x.bytes > 0) == (y.bytes > 0);
         });
}

std::vector<std::uint64_t> sizes_of(const TensorTrace& trace) {
  std::vector<std::uint64_t> sizes;
  for (const auto& event : trace.events) sizes.push_back(event.bytes);
  return sizes;
}

template <class Memory>
WorkBytes work_in(const Rehearsal& few, const Rehearsal& more, std::uint64_t rows) {
  // From the totals of each, as pieces of blocks for few rows do not lie as those for many.
  if (!same_course(few.trace, more.trace)) {
    const WorkBytes a = replay<ExactMemory>(few.trace, sizes_of(few.trace)),
                    b = replay<ExactMemory>(more.trace, sizes_of(more.trace));
    return {on_line(few, a.kept, more, b.kept, rows), on_line(few, a.most, more, b.most, rows)};
  }
  std::vector<std::uint64_t> sizes;
  for (std::size_t e = 0; e < few.trace.events.size(); ++e)
    sizes.push_back(
        on_line(few, few.trace.events[e].bytes, more, more.trace.events[e].bytes, rows));
  return replay<Memory>(few.trace, sizes);
}

}  // namespace

TensorTrace trace_tensors(const std::function<void(const std::function<void()>&)>& work) {
  c10::Allocator& before = *c10::GetCPUAllocator();
  NotingAllocator noting(before);
  Notes& notes = noting.notes();
  {
    const InsteadOf instead(before, noting);
    work([&] {
      const std::lock_guard lock(notes.mutex);
      notes.trace.kept_at = notes.trace.events.size();
    });
  }
  const std::lock_guard lock(notes.mutex);
  notes.open = false;
  return std::move(notes.trace);
}

WorkBytes work_bytes(const Rehearsal& few, const Rehearsal& more, std::uint64_t rows,
                     BlockMemory memory) {
  return memory == BlockMemory::cached ? work_in<CachedMemory>(few, more, rows)
                                       : work_in<HostMemory>(few, more, rows);
}

}  // namespace plait
