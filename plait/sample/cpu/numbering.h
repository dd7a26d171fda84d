// The numbers of vertices in a sample, found by their ids (append-unique).
//
// A table has a place for each vertex of the graph. It holds the numbers of one tree at a time; a
// sample that is not disjoint is one tree. Edges of a tree come in few runs for each hop, so the
// table changes trees seldom, and is faster than a hash table of all vertices of all trees.
//
// Threads may read the vertices that were found before a hop while that hop's are added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "plait/base/array.h"
#include "plait/sample/neighbours.h"

namespace plait {

inline constexpr std::uint32_t kNoNumber = std::numeric_limits<std::uint32_t>::max();
// Places of the table are fetched so many edges before their use.
inline constexpr std::size_t kTableAhead = 24;

class Numbering {
 public:
  // All of `table` is kNoNumber, and will be again. Adds the seeds to `sample`.
  Numbering(std::span<std::uint32_t> table, std::span<const std::uint64_t> seeds, bool disjoint,
            Sample& sample)
      : table_(table), disjoint_(disjoint), sample_(sample), found_(seeds.size()) {
    if (disjoint) {
      for (std::uint32_t tree = 0; tree < seeds.size(); ++tree) {
        sample.trees.push_back(tree);
        runs_.push_back({{tree, tree + 1}});
      }
    } else {
      runs_.push_back({{0, static_cast<std::uint32_t>(seeds.size())}});
    }
    sample.vertices.assign(seeds.begin(), seeds.end());
    if (!runs_.empty()) enter(0);
  }
  ~Numbering() { leave(); }
  Numbering(const Numbering&) = delete;
  Numbering& operator=(const Numbering&) = delete;

  // Returns the number of vertices so far.
  std::uint64_t found() const { return found_; }

  // Prepares for so many ids.
  void expect(std::uint64_t edges) {
    const std::uint64_t most = disjoint_ ? edges : std::min<std::uint64_t>(edges, table_.size());
    sample_.vertices.resize(found_ + most);
    if (disjoint_) sample_.trees.resize(found_ + most);
  }

  // Turns ids of vertices of a tree into their numbers. Those that have none get the next ones.
  void number(std::span<std::uint32_t> ids, std::uint32_t tree) {
    if (tree != tree_) {
      leave();
      enter(tree);
    }
    runs_[tree].reserve(runs_[tree].size() + 1);  // nothing fails once the table is written
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
    add_run(found);
  }

  // Ends the sample, which may then be moved.
  void end() {
    leave();
    sample_.vertices.resize(found_);
    if (disjoint_) sample_.trees.resize(found_);
  }

 private:
  using Run = std::pair<std::uint32_t, std::uint32_t>;  // begin and end of numbers of one tree

  // Adds the numbers from found_ on to the present tree.
  void add_run(std::uint64_t found) {
    if (found == found_) return;
    const Run run(static_cast<std::uint32_t>(found_), static_cast<std::uint32_t>(found));
    if (disjoint_) std::fill(&sample_.trees[run.first], &sample_.trees[0] + run.second, tree_);
    std::vector<Run>& runs = runs_[tree_];
    if (runs.back().second == run.first)
      runs.back().second = run.second;
    else
      runs.push_back(run);
    found_ = found;
  }

  // A vertex that is a seed several times has the first of its numbers.
  void enter(std::uint32_t tree) {
    tree_ = tree;
    for (const Run& run : runs_[tree])
      for (std::uint32_t number = run.first; number < run.second; ++number) {
        std::uint32_t& place = table_[sample_.vertices[number]];
        place = std::min(place, number);
      }
  }

  void leave() {
    if (tree_ == kNoNumber) return;
    if (!disjoint_ && found_ > table_.size() / 16) {
      std::ranges::fill(table_, kNoNumber);
    } else {
      for (const Run& run : runs_[tree_])
        for (std::uint32_t number = run.first; number < run.second; ++number)
          table_[sample_.vertices[number]] = kNoNumber;
    }
    tree_ = kNoNumber;
  }

  const std::span<std::uint32_t> table_;
  const bool disjoint_;
  Sample& sample_;
  std::uint64_t found_;
  std::vector<std::vector<Run>> runs_;  // by tree
  std::uint32_t tree_ = kNoNumber;      // the tree whose numbers the table holds
};

}  // namespace plait
