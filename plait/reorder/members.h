// The vertices of each label, and scratch memory for sums by label. Internal to this room.
#pragma once

#include <omp.h>

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/memory.h"
#include "plait/base/parallel.h"

namespace plait {

// The members of label c are vertices[begin[c]] .. vertices[begin[c + 1] - 1], ascending.
struct Members {
  std::vector<std::uint64_t> begin;
  std::vector<std::uint32_t> vertices;
};

// Sorts vertices by labels 0 .. count - 1.
inline Members members_of(std::span<const std::uint32_t> labels, std::uint32_t count) {
  Members members{std::vector<std::uint64_t>(count + std::size_t{1}),
                  std::vector<std::uint32_t>(labels.size())};
  for (const std::uint32_t label : labels) ++members.begin[label + std::size_t{1}];
  for (std::size_t c = 0; c < count; ++c) members.begin[c + 1] += members.begin[c];
  std::vector<std::uint64_t> at(members.begin.begin(), members.begin.end() - 1);
  for (std::size_t v = 0; v < labels.size(); ++v)
    members.vertices[at[labels[v]]++] = static_cast<std::uint32_t>(v);
  return members;
}

// Sums by label, and the labels that have one, in the order in which they came.
class SumsByLabel {
 public:
  explicit SumsByLabel(std::size_t labels = 0) : sums_(labels) {}

  void add(std::uint32_t label, std::uint64_t value) {
    if (sums_[label] == 0) found_.push_back(label);
    sums_[label] += value;
  }
  std::uint64_t of(std::uint32_t label) const { return sums_[label]; }
  std::span<const std::uint32_t> labels() const { return found_; }
  void clear() {
    for (const std::uint32_t label : found_) sums_[label] = 0;
    found_.clear();
  }

 private:
  std::vector<std::uint64_t> sums_;
  std::vector<std::uint32_t> found_;
};

// One for each thread.
class SumsOfThreads {
 public:
  // Throws DoesNotFitError.
  explicit SumsOfThreads(std::size_t labels, int threads = thread_count()) {
    const auto count = static_cast<std::size_t>(threads);
    require_memory(count * labels * sizeof(std::uint64_t), "the edges between communities");
    sums_.assign(count, SumsByLabel(labels));
  }
  SumsByLabel& mine() { return sums_[static_cast<std::size_t>(omp_get_thread_num())]; }

 private:
  std::vector<SumsByLabel> sums_;
};

}  // namespace plait
