// Intersections of lists on the CPU (intersect() of ../operators.h). A thread puts the list of a
// row in a table, and looks there for the entries of the other lists.
//
// Most of these are not in the table. A filter of bits, 32 for each entry of the table and thus
// in the nearest cache, tells so of nearly all of them without a branch that could be mispredicted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "plait/base/array.h"
#include "plait/frontier/lists.h"

namespace plait {

// Some numbers, each once, and how often each was found.
class FoundNumbers {
 public:
  // Takes other numbers, which have not been found so far.
  void take(const std::uint32_t* numbers, std::uint32_t size) {
    const int bits = std::min(31, static_cast<int>(std::bit_width(size)) + 5);
    shift_ = 32 - bits;
    filter_.assign((std::size_t{1} << bits) / 64, 0);
    entries_.assign(std::size_t{1} << (bits - kFewer), {});
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t hash = hash_of(numbers[i]);
      filter_[hash / 64] |= std::uint64_t{1} << hash % 64;
      Entry& entry = place_of(hash, numbers[i]);
      entry.number = numbers[i];
    }
  }
  // Returns how many of these numbers are among those taken, and counts each.
  std::uint64_t find(const std::uint32_t* numbers, std::uint32_t size) {
    constexpr std::uint32_t kAtOnce = 512;
    std::uint32_t likely[kAtOnce];
    std::uint64_t found = 0;
    for (std::uint32_t begin = 0; begin < size; begin += kAtOnce) {
      const std::uint32_t end = std::min(size, begin + kAtOnce);
      std::uint32_t count = 0;
      for (std::uint32_t i = begin; i < end; ++i) {
        const std::uint32_t hash = hash_of(numbers[i]);
        likely[count] = numbers[i];
        count += filter_[hash / 64] >> hash % 64 & 1;
      }
      for (std::uint32_t k = 0; k < count; ++k) {
        Entry& entry = place_of(hash_of(likely[k]), likely[k]);
        const bool is_there = entry.number == likely[k];
        entry.times += is_there;
        found += is_there;
      }
    }
    return found;
  }
  // Returns how often one of those taken was found.
  std::uint32_t times(std::uint32_t number) { return place_of(hash_of(number), number).times; }

 private:
  static constexpr int kFewer = 4;  // bits of an entry's place than of a hash
  struct Entry {
    std::uint32_t number = kNoVertex, times = 0;
  };

  std::uint32_t hash_of(std::uint32_t number) const { return number * 0x9e3779b1u >> shift_; }
  // Returns the place of the number, or the free one where it would be.
  Entry& place_of(std::uint32_t hash, std::uint32_t number) {
    std::size_t at = hash >> kFewer;
    while (entries_[at].number != number && entries_[at].number != kNoVertex)
      at = (at + 1) & (entries_.size() - 1);
    return entries_[at];
  }

  std::vector<std::uint64_t> filter_;
  std::vector<Entry> entries_;
  int shift_ = 0;
};

// The work on rows of one thread.
template <class F>
class RowIntersections {
 public:
  RowIntersections(const SlotLists& lists, const LentEntries& lent, const F& f)
      : lists_(lists), lent_(lent), f_(f) {}

  void take(std::uint64_t row) {
    const ListPlace list = lists_.places[row];
    if (list.size() < 2) return;
    const std::uint64_t first = list.first() - lists_.first;
    const Slot* const slots = lists_.slots + first;
    const std::uint32_t* const numbers = lists_.numbers + first;
    others_.clear();
    for (std::uint32_t i = 0; i < list.size(); ++i) {
      const ListPlace other = lists_.places[slots[i]];
      if (lent_.have(other)) others_.push_back({i, other.size(), lent_.of(other)});
    }
    if (others_.empty() || (list.size() <= kFew && !may_meet(numbers, list.size()))) return;
    table_.take(numbers, list.size());
    std::uint64_t found = 0;
    for (std::size_t k = 0; k < others_.size(); ++k) {
      if (k + kAhead < others_.size()) others_[k + kAhead].fetch();
      const std::uint64_t times = table_.find(others_[k].numbers, others_[k].size);
      if (times == 0) continue;
      f_(slots[others_[k].i], times);
      found += times;
    }
    if (found == 0) return;
    f_(row, found);
    for (std::uint32_t i = 0; i < list.size(); ++i)
      if (const std::uint32_t times = table_.times(numbers[i]); times > 0) f_(slots[i], times);
  }

 private:
  static constexpr std::size_t kAhead = 4;  // lists that are on their way from memory
  static constexpr std::uint32_t kFew = 4;

  // Tells whether other lists may have entries of the row, which are few: for most such rows in
  // graphs with few triangles, it costs less to find out that they have none than to make a table.
  bool may_meet(const std::uint32_t* numbers, std::uint32_t size) const {
    const auto bit = [](std::uint32_t number) { return number * 0x9e3779b1u >> 26; };
    std::uint64_t mine = 0, theirs = 0;
    for (std::uint32_t i = 0; i < size; ++i) mine |= std::uint64_t{1} << bit(numbers[i]);
    for (const Other& other : others_)
      for (std::uint32_t i = 0; i < other.size; ++i) theirs |= mine >> bit(other.numbers[i]);
    return (theirs & 1) != 0;
  }

  // Another list, of the i-th entry of the row.
  struct Other {
    std::uint32_t i, size;
    const std::uint32_t* numbers;

    // Memory brings the first lines; the processor sees then that more follow.
    void fetch() const {
      constexpr std::uint32_t kLine = kCacheLine / sizeof(std::uint32_t), kLines = 8;
      for (std::uint32_t at = 0; at < std::min(size, kLines * kLine); at += kLine)
        __builtin_prefetch(numbers + at);
    }
  };

  const SlotLists lists_;
  const LentEntries lent_;
  const F f_;
  FoundNumbers table_;
  std::vector<Other> others_;
};

}  // namespace plait
