// Some of a graph's vertices, numbered in ascending order. It takes 3 bits of memory for every two
// vertices of the graph, whatever is in the set.
//
// Encoding: one bit per vertex, in words of 64, and for each word the number of bits that are set
// in the words before it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "plait/base/array.h"
#include "plait/base/ids.h"

namespace plait {

// A set of vertices. Vertices are below the number that it was made for; nothing checks that.
class VertexSet {
 public:
  // Makes an empty set for a graph of so many vertices.
  explicit VertexSet(std::uint64_t vertices)
      : words_((vertices + 63) / 64, 0), before_(words_.size(), 0) {}

  std::uint64_t size() const { return size_; }
  bool contains(std::uint64_t v) const { return (words_[v / 64] >> (v % 64) & 1) != 0; }
  void insert(std::uint64_t v) {
    size_ += contains(v) ? 0 : 1;
    words_[v / 64] |= bit(v);
  }
  void clear() {
    std::ranges::fill(words_, 0);
    size_ = 0;
  }

  // Numbers the vertices in the set, for slot(). An insert() after it makes the numbers invalid.
  void number() {
    std::uint64_t count = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      before_[w] = static_cast<Slot>(count);
      count += static_cast<std::uint64_t>(std::popcount(words_[w]));
    }
  }
  // Returns the number of a vertex that is in the set, from 0 in ascending order.
  Slot slot(std::uint64_t v) const {
    const std::uint64_t lower = words_[v / 64] & (bit(v) - 1);
    return before_[v / 64] + static_cast<Slot>(std::popcount(lower));
  }
  // Calls body(v) for each vertex, ascending.
  template <class Body>
  void each(Body body) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t rest = words_[w]; rest != 0; rest &= rest - 1)
        body(w * 64 + static_cast<std::uint64_t>(std::countr_zero(rest)));
  }

 private:
  static std::uint64_t bit(std::uint64_t v) { return std::uint64_t{1} << (v % 64); }

  Buffer<std::uint64_t> words_;
  Buffer<Slot> before_;
  std::uint64_t size_ = 0;
};

}  // namespace plait
