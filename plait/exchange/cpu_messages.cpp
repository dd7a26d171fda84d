#include "plait/exchange/cpu_messages.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "plait/base/all_to_all.h"
#include "plait/base/delay.h"
#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/saturating.h"
#include "plait/base/timer.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

constexpr std::size_t kBlock = 1024;                       // words of marks
constexpr std::size_t kGrain = 4096;                       // values
constexpr std::uint64_t kWhole = std::uint64_t{1} << 63;   // beside a count: all rows of the owner
constexpr std::uint64_t kFailed = std::uint64_t{1} << 63;  // beside a call
// Bytes for a value that comes from another host: its number among all, its number, itself.
constexpr std::uint64_t kComeBytes = 2 * sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr const char* kWhat = "in a push to owners";

template <Merge how, class T>
void merge_values(std::uint64_t count, const std::uint32_t* rows, const T* theirs, T* values,
                  SlotMarks marks) {
  parallel_blocks(count, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {  // rows differ, so that threads do not meet
      T& mine = values[rows[i]];
      const T now = merged<how>(mine, theirs[i]);
      if (!changes<how>(mine, now)) continue;
      mine = now;
      std::atomic_ref(marks[rows[i] / 32])
          .fetch_or(std::uint32_t{1} << rows[i] % 32, std::memory_order_relaxed);
    }
  });
}

}  // namespace

void require_messages(const SlotValues& values, SlotMarks marks, Merge how, std::uint64_t slots) {
  std::visit(
      [&](auto some) {
        using T = typename decltype(some)::value_type;
        require<UsageError>(some.size() == slots && marks.size() >= mark_words(slots),
                            "{} values and {} words of marks were given for {} slots", some.size(),
                            marks.size(), slots);
        require<UsageError>(can_merge<T>(how), "floats cannot be merged bit by bit");
      },
      values);
}

CpuMessages::CpuMessages(World& world, const Shard& shard)
    : world_(world), shard_(shard), ranks_(static_cast<std::size_t>(world.size())) {
  if (ranks_ == 1) return;
  together(world_, kWhat, [&] {
    const auto rank = static_cast<std::size_t>(world_.rank());
    for (const auto& starts : gather_vectors(world_, shard.halo.starts)) {
      layouts_.emplace_back(ranks_, starts.back());
      begins_.push_back(starts[rank]);
      come_most_.push_back(starts[rank + 1] - starts[rank]);
    }
    const OutboxLayout& own = layouts_[rank];
    on_all_or_none(world_, [&] { marked_.resize(blocks() * ranks_); });
    if (world_.one_host())
      heap_ = SymmetricHeap::create(world_, own.bytes(), SizeRule::largest);
    else
      make_private();
    std::ranges::copy(shard.halo.row.span(),
                      reinterpret_cast<std::uint32_t*>(outbox() + own.all_rows()));
    if (heap_) heap_->barrier();  // peers read the row numbers
  });
}

// Takes the memory of ranks that are on several hosts, and learns which own rows others may push.
void CpuMessages::make_private() {
  const auto rank = static_cast<std::size_t>(world_.rank());
  std::vector<std::vector<std::uint32_t>> wanted(ranks_);
  on_all_or_none(world_, [&] {
    Bytes bytes = layouts_[rank].bytes();
    for (std::size_t r = 0; r < ranks_; ++r) bytes = bytes + Bytes(come_most_[r]) * kComeBytes;
    require_memory((bytes * world_.ranks_of_host().size()).value,
                   "messages between the ranks of several hosts", available_memory());
    private_ = Buffer<std::byte>(layouts_[rank].bytes());
    for (std::size_t r = 0; r < ranks_; ++r) {
      const auto first =
          shard_.halo.row.span().begin() + static_cast<std::ptrdiff_t>(shard_.halo.starts[r]);
      wanted[r].assign(
          first, first + static_cast<std::ptrdiff_t>(shard_.halo.rows_of(static_cast<int>(r))));
      all_rows_.emplace_back(come_most_[r]);
      rows_.emplace_back(come_most_[r]);
      values_.emplace_back(come_most_[r]);
    }
  });
  exchange_parts(
      world_, ranks_, [&](std::size_t r) { return std::span(std::as_const(wanted[r])); },
      [&](std::size_t r) { return std::span(all_rows_[r]); });
}

std::size_t CpuMessages::blocks() const {
  const std::uint64_t words = mark_words(shard_.slot_count()) - shard_.own / 32;
  return (words + kBlock - 1) / kBlock;
}

std::uint64_t* CpuMessages::header_of(std::byte* outbox) const {
  return reinterpret_cast<std::uint64_t*>(outbox + layouts_[0].header(turn_));
}

// Returns the bits of a word of marks that are of halo slots.
std::uint32_t CpuMessages::halo_bits(std::uint64_t word) const {
  const std::uint64_t own = shard_.own, slots = shard_.slot_count();
  std::uint32_t bits = ~std::uint32_t{0};
  if (word == own / 32) bits <<= own % 32;
  if (word == slots / 32) bits &= (std::uint32_t{1} << slots % 32) - 1;
  return bits;
}

// Calls visit(word) for one block of words in which there are marks of halo slots.
template <class Visit>
void CpuMessages::for_words(std::size_t block, const Visit& visit) const {
  const std::uint64_t begin = shard_.own / 32 + block * kBlock;
  const std::uint64_t end = std::min(begin + kBlock, mark_words(shard_.slot_count()));
  for (std::uint64_t w = begin; w < end; ++w) visit(w);
}

// Calls visit(h) for the marked halo slots of one block of words, in ascending order.
template <class Visit>
void CpuMessages::for_marked(SlotMarks marks, std::size_t block, const Visit& visit) const {
  for_words(block, [&](std::uint64_t w) {
    for (std::uint32_t bits = marks[w] & halo_bits(w); bits != 0; bits &= bits - 1)
      visit(w * 32 + static_cast<std::uint64_t>(std::countr_zero(bits)) - shard_.own);
  });
}

std::uint64_t CpuMessages::count_own(SlotMarks marks) const {
  std::atomic<std::uint64_t> marked{0};
  parallel_blocks(mark_words(shard_.own), kBlock, [&](std::size_t begin, std::size_t end) {
    std::uint64_t found = 0;
    for (std::size_t w = begin; w < end; ++w) {
      const bool shared = w == shard_.own / 32;  // with the halo
      const std::uint32_t own = (std::uint32_t{1} << shard_.own % 32) - 1;
      found += static_cast<std::uint64_t>(std::popcount(shared ? marks[w] & own : marks[w]));
    }
    marked.fetch_add(found, std::memory_order_relaxed);
  });
  return marked;
}

// Writes the values of marked slots for all owners to this turn's outbox, and their numbers to its
// header.
template <class T>
void CpuMessages::write(std::span<const T> values, SlotMarks marks) {
  const auto rank = static_cast<std::size_t>(world_.rank());
  const Halo& halo = shard_.halo;
  std::byte* const box = outbox();
  const auto rows = reinterpret_cast<std::uint32_t*>(box + layouts_[rank].rows(turn_));
  const auto out = reinterpret_cast<T*>(box + layouts_[rank].values(turn_));
  const std::span<const T> of_halo = values.subspan(shard_.own);
  std::ranges::fill(marked_, 0);
  parallel_for(blocks(), [&](std::size_t b) {
    std::uint64_t* const counts = marked_.data() + b * ranks_;
    for_marked(marks, b, [&](std::uint64_t h) { ++counts[halo.owner[h]]; });
  });
  std::uint64_t* const header = header_of(box);
  std::uint64_t* const sent = header + 3;
  header[2] = count_own(marks);
  for (std::size_t r = 0; r < ranks_; ++r) {
    std::uint64_t before = halo.starts[r];
    for (std::size_t b = 0; b < blocks(); ++b)
      before += std::exchange(marked_[b * ranks_ + r], before);
    const std::uint64_t marked = before - halo.starts[r];
    header[2] += marked;
    const std::uint64_t all = halo.rows_of(static_cast<int>(r));
    const bool whole = marked * (sizeof(T) + sizeof(std::uint32_t)) > all * sizeof(T);
    sent[r] = whole ? kWhole | all : marked;
    cost_.values += whole ? all : marked;
    cost_.bytes += whole ? all * sizeof(T) : marked * (sizeof(T) + sizeof(std::uint32_t));
    if (!whole) continue;
    parallel_blocks(all, kGrain, [&](std::size_t begin, std::size_t end) {
      std::copy_n(of_halo.data() + halo.starts[r] + begin, end - begin,
                  out + halo.starts[r] + begin);
    });
  }
  parallel_for(blocks(), [&](std::size_t b) {
    std::uint64_t* const next = marked_.data() + b * ranks_;
    for_marked(marks, b, [&](std::uint64_t h) {
      const std::uint32_t owner = halo.owner[h];
      if ((sent[owner] & kWhole) != 0) return;
      const std::uint64_t at = next[owner]++;
      rows[at] = halo.row[h];
      out[at] = of_halo[h];
    });
  });
}

// Takes the marks of values that were sent away and, where values add up, these values.
template <class T>
void CpuMessages::reset_sent(std::span<T> values, SlotMarks marks, Merge how) const {
  parallel_for(blocks(), [&](std::size_t b) {
    if (how == Merge::add) {
      const auto reset = [&](std::uint64_t h) { values[shard_.own + h] = 0; };
      for_marked(marks, b, reset);
    }
    for_words(b, [&](std::uint64_t w) { marks[w] &= ~halo_bits(w); });
  });
}

// Returns what others have written to their outboxes for this rank.
std::vector<CpuMessages::Arrived> CpuMessages::read_outboxes(std::uint64_t value_bytes) {
  std::vector<Arrived> arrived;
  for (std::size_t r = 0; r < ranks_; ++r) {
    std::byte* const box = heap_->part(static_cast<int>(r)).data();
    const std::uint64_t* const header = header_of(box);
    const std::uint64_t sent = header[3 + static_cast<std::size_t>(world_.rank())];
    const OutboxLayout& layout = layouts_[r];
    const std::uint64_t rows = (sent & kWhole) != 0 ? layout.all_rows() : layout.rows(turn_);
    arrived.push_back({header[0], header[1], header[2], sent & ~kWhole,
                       reinterpret_cast<const std::uint32_t*>(box + rows) + begins_[r],
                       box + layout.values(turn_) + begins_[r] * value_bytes});
  }
  return arrived;
}

// Sends each rank its part of the outbox: first the numbers, then that many values.
std::vector<CpuMessages::Arrived> CpuMessages::receive(std::uint64_t value_bytes) {
  struct Numbers {
    std::uint64_t call, word, marked, sent;
  };
  const auto rank = static_cast<std::size_t>(world_.rank());
  std::byte* const box = private_.data();
  const std::uint64_t* const header = header_of(box);
  std::vector<Numbers> mine, theirs(ranks_);
  for (std::size_t r = 0; r < ranks_; ++r)
    mine.push_back({header[0], header[1], header[2], header[3 + r]});
  exchange_parts(
      world_, ranks_, [&](std::size_t r) { return std::span<const Numbers>(&mine[r], 1); },
      [&](std::size_t r) { return std::span(&theirs[r], 1); });
  std::vector<Arrived> arrived;
  for (const Numbers& n : theirs)
    arrived.push_back({n.call, n.word, n.marked, n.sent & ~kWhole, {}, {}});
  if (!alike(arrived)) return arrived;

  const OutboxLayout& layout = layouts_[rank];
  const auto rows = reinterpret_cast<const std::uint32_t*>(box + layout.rows(turn_));
  const auto listed = [](std::uint64_t sent) { return (sent & kWhole) != 0 ? 0 : sent; };
  exchange_parts(
      world_, ranks_,
      [&](std::size_t r) { return std::span(rows + shard_.halo.starts[r], listed(mine[r].sent)); },
      [&](std::size_t r) { return std::span(rows_[r]).first(listed(theirs[r].sent)); });
  const std::byte* const values = box + layout.values(turn_);
  exchange_parts(
      world_, ranks_,
      [&](std::size_t r) {
        return std::span(values + shard_.halo.starts[r] * value_bytes,
                         (mine[r].sent & ~kWhole) * value_bytes);
      },
      [&](std::size_t r) {
        return std::as_writable_bytes(std::span(values_[r])).first(arrived[r].count * value_bytes);
      });
  for (std::size_t r = 0; r < ranks_; ++r) {
    arrived[r].rows = (theirs[r].sent & kWhole) != 0 ? all_rows_[r].data() : rows_[r].data();
    arrived[r].values = reinterpret_cast<const std::byte*>(values_[r].data());
  }
  return arrived;
}

bool CpuMessages::alike(const std::vector<Arrived>& arrived) {
  return std::ranges::all_of(arrived, [&](const Arrived& a) {
    return a.call == arrived.front().call && (a.call & kFailed) == 0;
  });
}

std::vector<CpuMessages::Arrived> CpuMessages::exchange(std::uint64_t value_bytes) {
  const Timed timed("wait for ranks");
  AddTime time(cost_.waiting);
  if (!heap_) return receive(value_bytes);
  heap_->barrier();
  return read_outboxes(value_bytes);
}

Pushed CpuMessages::push(const SlotValues& values, SlotMarks marks, Merge how, std::uint64_t word) {
  ++cost_.pushes;
  if (ranks_ == 1) {
    require_messages(values, marks, how, shard_.slot_count());
    return {.marked = count_own(marks), .words = {word}};
  }
  return together(world_, kWhat, [&] {
    // A rank that fails here still meets the others, and all throw.
    std::optional<Error> failure;
    turn_ = 1 - turn_;
    std::uint64_t* const header = header_of(outbox());
    std::fill_n(header, 3 + ranks_, 0);
    try {
      require_messages(values, marks, how, shard_.slot_count());
      fault_point();
      const Timed timed("write messages");
      std::visit(
          [&](auto some) {
            write(std::span<const typename decltype(some)::value_type>(some), marks);
          },
          values);
    } catch (...) {
      failure.emplace(error_in_flight());
    }
    header[0] = call_of(values, how) | (failure ? kFailed : 0);
    header[1] = word;
    delay_point();
    return std::visit(
        [&](auto some) {
          const std::vector<Arrived> arrived =
              exchange(sizeof(typename decltype(some)::value_type));
          require_alike(arrived, failure);
          return merge_arrived(some, marks, how, arrived);
        },
        values);
  });
}

// Throws on all ranks the failure of one, or that they push differently.
void CpuMessages::require_alike(const std::vector<Arrived>& arrived,
                                const std::optional<Error>& failure) {
  if (alike(arrived)) return;
  if (std::ranges::any_of(arrived, [](const Arrived& a) { return (a.call & kFailed) != 0; }))
    agree_on_error(world_, failure, FailureOf::rank);
  require_on_all<UsageError>(false, "{}", kDifferentPushes);
}

// Merges in the order of ranks.
template <class T>
Pushed CpuMessages::merge_arrived(std::span<T> values, SlotMarks marks, Merge how,
                                  const std::vector<Arrived>& arrived) {
  const Timed timed("merge messages");
  reset_sent(values, marks, how);
  Pushed pushed;
  for (const Arrived& a : arrived) {
    pushed.marked += a.marked;
    pushed.words.push_back(a.word);
    with_merge<T>(how, [&]<Merge kHow>() {
      merge_values<kHow>(a.count, a.rows, reinterpret_cast<const T*>(a.values), values.data(),
                         marks);
    });
  }
  return pushed;
}

}  // namespace plait
