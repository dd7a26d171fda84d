// The numbers of vertices in a sample, found by their ids (append-unique).
#pragma once

#include <cstdint>
#include <limits>

#include "plait/base/array.h"
#include "plait/sample/check.h"
#include "plait/sample/neighbours.h"

namespace plait {

inline constexpr std::uint32_t kNoNumber = std::numeric_limits<std::uint32_t>::max();

// Numbers of vertices of one tree: a table with a place for each vertex of the graph, which has
// kNoNumber between samples.
class FlatNumbering {
 public:
  FlatNumbering(Buffer<std::uint32_t>& table, Sample& sample) : table_(table), sample_(sample) {}
  ~FlatNumbering() { end(); }
  FlatNumbering(const FlatNumbering&) = delete;
  FlatNumbering& operator=(const FlatNumbering&) = delete;

  // Leaves the table as it was; must be called before the sample is moved.
  void end() {
    for (const std::uint64_t vertex : sample_.vertices) table_[vertex] = kNoNumber;
  }
  void add_seed(std::uint64_t vertex) {
    const auto number = static_cast<std::uint32_t>(sample_.vertices.size());
    sample_.vertices.push_back(vertex);
    if (table_[vertex] == kNoNumber) table_[vertex] = number;
  }
  // Prepares for so many calls of number_of().
  void expect(std::uint64_t edges) {
    const std::uint64_t found = sample_.vertices.size();
    sample_.vertices.reserve(found + std::min<std::uint64_t>(edges, table_.size()));
  }
  void prefetch(std::uint32_t, std::uint64_t vertex) const {
    __builtin_prefetch(table_.data() + vertex, 1);
  }
  // Returns the number of a vertex, the next one if it has none.
  std::uint32_t number_of(std::uint32_t, std::uint64_t vertex) {
    std::uint32_t number = table_[vertex];
    if (number != kNoNumber) return number;
    number = static_cast<std::uint32_t>(sample_.vertices.size());
    check_sample_size(std::uint64_t{number} + 1, "vertices");
    sample_.vertices.push_back(vertex);
    return table_[vertex] = number;
  }

 private:
  Buffer<std::uint32_t>& table_;
  Sample& sample_;
};

// Numbers of vertices by tree: a hash table with open addressing, at most half full.
class TreeNumbering {
 public:
  TreeNumbering(Buffer<std::uint32_t>& table, Sample& sample) : table_(table), sample_(sample) {}

  void end() {}
  void add_seed(std::uint64_t vertex) {
    expect(1);
    number_of(static_cast<std::uint32_t>(sample_.vertices.size()), vertex);
  }
  // Prepares for so many calls of number_of().
  void expect(std::uint64_t edges) {
    const std::uint64_t most = sample_.vertices.size() + edges;
    sample_.vertices.reserve(most);
    sample_.trees.reserve(most);
    if (2 * most <= used_) return;
    while (used_ < 2 * most) used_ *= 2;
    if (table_.size() < used_) table_ = Buffer<std::uint32_t>(used_);
    std::fill_n(table_.data(), used_, kNoNumber);
    for (std::uint32_t number = 0; number < sample_.vertices.size(); ++number)
      table_[place_of(sample_.trees[number], sample_.vertices[number])] = number;
  }
  void prefetch(std::uint32_t tree, std::uint64_t vertex) const {
    __builtin_prefetch(table_.data() + hash(tree, vertex), 1);
  }
  // Returns the number of a vertex, the next one if it has none.
  std::uint32_t number_of(std::uint32_t tree, std::uint64_t vertex) {
    std::uint32_t& number = table_[place_of(tree, vertex)];
    if (number != kNoNumber) return number;
    const std::uint64_t next = sample_.vertices.size();
    check_sample_size(next + 1, "vertices");
    sample_.vertices.push_back(vertex);
    sample_.trees.push_back(tree);
    return number = static_cast<std::uint32_t>(next);
  }

 private:
  std::uint64_t hash(std::uint32_t tree, std::uint64_t vertex) const {
    const std::uint64_t mixed = (vertex ^ std::uint64_t{tree} << 32) * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) & (used_ - 1);
  }
  // Returns the place of a vertex, or the free one in which to put it.
  std::uint64_t place_of(std::uint32_t tree, std::uint64_t vertex) const {
    std::uint64_t place = hash(tree, vertex);
    for (;; place = (place + 1) & (used_ - 1)) {
      const std::uint32_t number = table_[place];
      if (number == kNoNumber ||
          (sample_.vertices[number] == vertex && sample_.trees[number] == tree))
        return place;
    }
  }

  Buffer<std::uint32_t>& table_;
  Sample& sample_;
  std::uint64_t used_ = 1;  // places of the table, a power of two
};

}  // namespace plait
