// The numbers of vertices in a sample, found by their ids (append-unique).
//
// Others may read the vertices that were found before a hop while that hop's are added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "plait/base/array.h"
#include "plait/sample/neighbours.h"

namespace plait {

inline constexpr std::uint32_t kNoNumber = std::numeric_limits<std::uint32_t>::max();
// The number of edges by which places in tables are fetched before use.
inline constexpr std::size_t kTableAhead = 24;

// Numbers of vertices of one tree: a table with a place for each vertex of the graph, which has
// kNoNumber between samples.
class FlatNumbering {
 public:
  static constexpr bool kTrees = false;

  FlatNumbering(Buffer<std::uint32_t>& table, Sample& sample) : table_(table), sample_(sample) {}
  ~FlatNumbering() { end(); }
  FlatNumbering(const FlatNumbering&) = delete;
  FlatNumbering& operator=(const FlatNumbering&) = delete;

  std::uint64_t found() const { return found_; }

  void add_seeds(std::span<const std::uint64_t> seeds) {
    sample_.vertices.resize(seeds.size());
    for (const std::uint64_t seed : seeds) {
      if (table_[seed] == kNoNumber) table_[seed] = static_cast<std::uint32_t>(found_);
      sample_.vertices[found_++] = seed;
    }
  }
  // Prepares for so many ids.
  void expect(std::uint64_t edges) {
    sample_.vertices.resize(found_ + std::min<std::uint64_t>(edges, table_.size()));
  }

  // Turns ids of vertices into their numbers. Those that have none get the next ones.
  void number(std::span<std::uint32_t> ids, std::uint32_t) {
    std::uint32_t* const table = table_.data();
    std::uint64_t* const vertices = sample_.vertices.data();
    std::uint64_t found = found_;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      __builtin_prefetch(table + ids[std::min(i + kTableAhead, ids.size() - 1)], 1);
      const std::uint32_t id = ids[i];
      if (table[id] == kNoNumber) {
        table[id] = static_cast<std::uint32_t>(found);
        vertices[found++] = id;
      }
      ids[i] = table[id];
    }
    found_ = found;
  }

  // Leaves the sample as it shall be and the table as it was.
  void end() {
    sample_.vertices.resize(found_);
    if (found_ > table_.size() / 16)
      std::ranges::fill(table_, kNoNumber);
    else
      for (const std::uint64_t vertex : sample_.vertices) table_[vertex] = kNoNumber;
    found_ = 0;
  }

 private:
  Buffer<std::uint32_t>& table_;
  Sample& sample_;
  std::uint64_t found_ = 0;
};

// Numbers of vertices by tree: a hash table with open addressing, at most half full.
class TreeNumbering {
 public:
  static constexpr bool kTrees = true;

  TreeNumbering(Buffer<std::uint32_t>& table, Sample& sample) : table_(table), sample_(sample) {}

  std::uint64_t found() const { return found_; }

  void add_seeds(std::span<const std::uint64_t> seeds) {
    expect(seeds.size());
    for (const std::uint64_t seed : seeds) add(static_cast<std::uint32_t>(found_), seed);
  }
  // Prepares for so many ids.
  void expect(std::uint64_t edges) {
    sample_.vertices.resize(found_ + edges);
    sample_.trees.resize(found_ + edges);
  }

  // Turns ids of vertices of a tree into their numbers. Those that have none get the next ones.
  void number(std::span<std::uint32_t> ids, std::uint32_t tree) {
    for (std::uint32_t& id : ids) {
      const std::uint32_t number = used_ > 0 ? table_[place_of(tree, id)] : kNoNumber;
      id = number == kNoNumber ? add(tree, id) : number;
    }
  }

  void end() {
    sample_.vertices.resize(found_);
    sample_.trees.resize(found_);
  }

 private:
  std::uint32_t add(std::uint32_t tree, std::uint64_t vertex) {
    if (2 * (found_ + 1) > used_) grow();
    const auto number = static_cast<std::uint32_t>(found_++);
    sample_.vertices[number] = vertex;
    sample_.trees[number] = tree;
    return table_[place_of(tree, vertex)] = number;
  }

  void grow() {
    used_ = std::max<std::uint64_t>(1024, 2 * used_);
    if (table_.size() < used_) table_ = Buffer<std::uint32_t>(used_);
    std::fill_n(table_.data(), used_, kNoNumber);
    for (std::uint32_t number = 0; number < found_; ++number)
      table_[place_of(sample_.trees[number], sample_.vertices[number])] = number;
  }

  // Returns the place of a vertex, or the free one in which to put it.
  std::uint64_t place_of(std::uint32_t tree, std::uint64_t vertex) const {
    const std::uint64_t mixed = (vertex ^ std::uint64_t{tree} << 32) * 0x9E3779B97F4A7C15u;
    std::uint64_t place = (mixed ^ mixed >> 32) & (used_ - 1);
    for (;; place = (place + 1) & (used_ - 1)) {
      const std::uint32_t number = table_[place];
      if (number == kNoNumber ||
          (sample_.vertices[number] == vertex && sample_.trees[number] == tree))
        return place;
    }
  }

  Buffer<std::uint32_t>& table_;
  Sample& sample_;
  std::uint64_t found_ = 0;
  std::uint64_t used_ = 0;  // places of the table, a power of two
};

}  // namespace plait
