// Pushes to owners against a slow, readable version, on either device.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/exchange/exchange.h"
#include "plait/world/gather.h"
#include "tests/support/random_graph.h"
#include "tests/world/ranks.h"

namespace plait::test {

// Moves values and marks to the exchange's device, pushes them, and brings them back.
template <class T>
using PushOnDevice =
    std::function<Pushed(Messages& messages, std::vector<T>& values,
                         std::vector<std::uint32_t>& marks, Merge how, std::uint64_t word)>;

inline bool is_marked(const std::vector<std::uint32_t>& marks, std::uint64_t slot) {
  return (marks[slot / 32] >> slot % 32 & 1) != 0;
}

// The value that merges leave out: no rank has one.
template <class T>
T no_value(Merge how) {
  if (how == Merge::min) return std::numeric_limits<T>::max();
  if (how == Merge::max) return std::numeric_limits<T>::lowest();
  T none{};
  if (how == Merge::first) std::memset(&none, 0xff, sizeof none);
  return none;
}

template <class T>
T merge_slowly(Merge how, T mine, T theirs) {
  switch (how) {
    case Merge::min:
      return std::min(mine, theirs);
    case Merge::max:
      return std::max(mine, theirs);
    case Merge::add:
      return mine + theirs;
    case Merge::first: {
      const T none = no_value<T>(how);
      return std::memcmp(&mine, &none, sizeof none) == 0 ? theirs : mine;
    }
    case Merge::bit_or:
      if constexpr (std::integral<T>) return mine | theirs;
  }
  return mine;
}

// What ranks know of each other in the slow version: by rank, its slots' vertices, values, marks.
template <class T>
struct Slots {
  std::vector<std::uint64_t> vertices;
  std::vector<T> values;
  std::vector<std::uint32_t> marks;
};

// A push of marked halo values of all ranks as one loop does it. Returns what `rank` has then.
template <class T>
Slots<T> push_slowly(const std::vector<Slots<T>>& all, std::size_t rank, std::uint64_t own,
                     Merge how) {
  Slots<T> mine = all[rank];
  for (std::uint64_t s = own; s < mine.values.size(); ++s) {
    if (how == Merge::add && is_marked(mine.marks, s)) mine.values[s] = 0;
    mine.marks[s / 32] &= ~(std::uint32_t{1} << s % 32);
  }
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (r == rank) continue;
    for (std::uint64_t s = 0; s < all[r].values.size(); ++s) {
      if (!is_marked(all[r].marks, s)) continue;
      for (std::uint64_t i = 0; i < own; ++i) {
        if (mine.vertices[i] != all[r].vertices[s]) continue;
        const T now = merge_slowly(how, mine.values[i], all[r].values[s]);
        if (now != mine.values[i]) mine.marks[i / 32] |= std::uint32_t{1} << i % 32;
        mine.values[i] = now;
      }
    }
  }
  return mine;
}

// Several pushes with few, many, no and all marks. Own marks stay in the real version and are none
// of the slow version's business, so that they are left out of what it is told.
template <class T>
void check_pushes(World& world, Exchange& exchange, const std::vector<std::uint64_t>& vertices,
                  std::uint64_t own, Merge how, const PushOnDevice<T>& push) {
  const auto rank = static_cast<std::size_t>(world.rank());
  const auto messages = exchange.make_messages(Direction::along);
  std::mt19937 random(static_cast<unsigned>(7 * rank) + static_cast<unsigned>(how));
  Slots<T> mine{vertices, std::vector<T>(vertices.size(), no_value<T>(how)),
                std::vector<std::uint32_t>(mark_words(vertices.size()))};
  for (std::uint64_t i = 0; i < own; ++i)
    if (random() % 4 != 0) mine.values[i] = static_cast<T>(random() % 100);
  constexpr int kParts[] = {9, 1, 0, 5, 10, 2};  // of 10 slots, which are marked
  for (std::uint64_t round = 0; round < std::size(kParts); ++round) {
    for (std::uint64_t s = own; s < vertices.size(); ++s) {
      if (static_cast<int>(random() % 10) >= kParts[round]) continue;
      // A slot goes on from what it was sent with: less, more, or other bits.
      const T more = static_cast<T>(random() % 100);
      mine.values[s] = merge_slowly(how, mine.values[s], more);
      mine.marks[s / 32] |= std::uint32_t{1} << s % 32;
    }
    std::vector<Slots<T>> all(static_cast<std::size_t>(world.size()));
    const auto of_all_vertices = gather_vectors(world, mine.vertices);
    const auto of_all_values = gather_vectors(world, mine.values);
    std::vector<std::uint32_t> marks = mine.marks;
    for (std::uint64_t i = 0; i < own; ++i) marks[i / 32] &= ~(std::uint32_t{1} << i % 32);
    const auto of_all_marks = gather_vectors(world, marks);
    for (std::size_t r = 0; r < all.size(); ++r)
      all[r] = {of_all_vertices[r], of_all_values[r], of_all_marks[r]};
    Slots<T> expected = push_slowly(all, rank, own, how);
    for (std::uint64_t i = 0; i < own; ++i)  // own marks stay
      expected.marks[i / 32] |= mine.marks[i / 32] & std::uint32_t{1} << i % 32;

    std::uint64_t marked = 0;
    for (const auto& of_rank : gather_vectors(world, mine.marks))
      for (const std::uint32_t word : of_rank)
        marked += static_cast<std::uint64_t>(std::popcount(word));
    const auto [found, words] = push(*messages, mine.values, mine.marks, how, 100 * round + rank);
    const std::string where = fmt::format("round {}, merge {}, {} bytes, rank {}", round,
                                          static_cast<int>(how), sizeof(T), rank);
    expect(found == marked, where + ": the marked slots are counted");
    expect(words.size() == all.size(), where + ": there is a word of each rank");
    for (std::size_t r = 0; r < words.size(); ++r)
      expect(words[r] == 100 * round + r, where + ": the words");
    for (std::uint64_t s = 0; s < mine.values.size(); ++s)
      expect(std::memcmp(&mine.values[s], &expected.values[s], sizeof(T)) == 0,
             fmt::format("{}: slot {} of {} (own: {}) has {} in place of {}", where, s,
                         mine.values.size(), own, mine.values[s], expected.values[s]));
    expect(mine.marks == expected.marks, where + ": the marks");
  }
  expect(messages->cost().pushes == std::size(kParts), "pushes are counted");
  expect(world.size() == 1 || vertices.size() == own || messages->cost().values > 0,
         "values are counted");
}

// All types and merges on one graph. `vertices_of` brings the vertices of slots to the host.
template <template <class> class OnDevice, class VerticesOf>
void check_all_pushes(World& world, Exchange& exchange, const Partition& partition,
                      const VerticesOf& vertices_of) {
  const std::vector<std::uint64_t> vertices = vertices_of(exchange.vertices(Direction::along));
  const std::uint64_t own = partition.size(world.rank());
  const auto check = [&]<class T>(T) {
    for (const Merge how : {Merge::min, Merge::max, Merge::add, Merge::bit_or, Merge::first})
      if (can_merge<T>(how)) check_pushes<T>(world, exchange, vertices, own, how, OnDevice<T>());
  };
  check(std::int32_t{}), check(std::uint32_t{}), check(std::int64_t{}), check(std::uint64_t{});
  check(float{}), check(double{});
}

// A push that is refused on one rank is refused on all, with values as they were, and on the CPU
// with marks as they were (`marks_stay`); the next push is right.
template <template <class> class OnDevice>
void check_refusals(World& world, Exchange& exchange, const Partition& partition, bool marks_stay) {
  const auto messages = exchange.make_messages(Direction::along);
  const std::uint64_t slots = exchange.vertices(Direction::along).size();
  const std::uint64_t own = partition.size(world.rank());
  std::vector<std::uint32_t> values(slots, 50), marks(mark_words(slots));
  for (std::uint64_t s = own; s < slots; ++s) {
    values[s] = 10 + static_cast<std::uint32_t>(world.rank());
    marks[s / 32] |= std::uint32_t{1} << s % 32;
  }
  const bool odd = world.rank() == 1;
  // Rank 1 pushes `others`, or in another way; all others the values.
  const auto expect_refusal = [&]<class T>(const std::string& text, std::vector<T> others,
                                           Merge odd_how, Merge how = Merge::min) {
    const auto before = std::pair(values, marks);
    try {
      if (odd)
        OnDevice<T>()(*messages, others, marks, odd_how, 0);
      else
        OnDevice<std::uint32_t>()(*messages, values, marks, how, 0);
    } catch (const UsageError& error) {
      expect(std::string(error.what()).find(text) != std::string::npos, error.what());
      expect(values == before.first, "a refused push has changed a value");
      expect(!marks_stay || marks == before.second, "a refused push has changed a mark");
      marks = before.second;
      return;
    }
    expect(false, "a push was not refused: " + text);
  };
  expect_refusal("merge them in different ways", values, Merge::max);
  expect_refusal("values of different types", std::vector<std::int32_t>(slots), Merge::min);
  expect_refusal("rank 1: 3 values", std::vector<std::uint32_t>(3), Merge::min);
  expect_refusal("rank 1: floats cannot be merged bit by bit", std::vector<float>(slots),
                 Merge::bit_or, Merge::bit_or);
  if (odd && marks_stay) switch_fault(Fault::refusal, 0);
  if (marks_stay) expect_refusal("rank 1: ", values, Merge::min);
  const auto words = OnDevice<std::uint32_t>()(*messages, values, marks, Merge::min, 7).words;
  expect(words == std::vector<std::uint64_t>(words.size(), 7), "words");
  if (partition.owner(0) == world.rank())
    expect(values[partition.row(0)] == (world.rank() == 0 ? 11 : 10), "the least value");
}

}  // namespace plait::test
