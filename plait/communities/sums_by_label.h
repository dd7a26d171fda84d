// Scratch memory for sums by label. Internal to this room.
#pragma once

#include <omp.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"

namespace plait {

// Sums by label, which are zeros but between add() and take().
class SumsByLabel {
 public:
  explicit SumsByLabel(std::size_t labels) : sums_(labels), found_(labels + 1) {}

  // Adds what each(add) hands to add(label, value), values above 0. Returns the labels that have
  // sums, but for `own`, in the order in which they came.
  std::span<const std::uint32_t> add(std::uint32_t own, auto&& each) {
    std::uint64_t* const sums = sums_.data();
    std::uint32_t* const found = found_.data();
    std::size_t count = 0;
    sums[own] = 1;
    // Without branches: no processor could predict which labels are new.
    each([&](std::uint32_t label, std::uint64_t value) {
      const std::uint64_t sum = sums[label];
      sums[label] = sum + value;
      found[count] = label;
      count += sum == 0;
    });
    --sums[own];
    return {found, count};
  }

  // Returns the sum of a label, and forgets it.
  std::uint64_t take(std::uint32_t label) { return std::exchange(sums_[label], 0); }

 private:
  std::vector<std::uint64_t> sums_;
  Buffer<std::uint32_t> found_;
};

// One for each thread.
class SumsOfThreads {
 public:
  // Throws DoesNotFitError.
  explicit SumsOfThreads(std::size_t labels, int threads = thread_count()) {
    const auto count = static_cast<std::size_t>(threads);
    // The list of labels that were found takes memory only as far as it was ever filled.
    require_memory(count * labels * sizeof(std::uint64_t), "the edges between communities");
    for (std::size_t i = 0; i < count; ++i) sums_.emplace_back(labels);
  }
  SumsByLabel& mine() { return sums_[static_cast<std::size_t>(omp_get_thread_num())]; }

 private:
  std::vector<SumsByLabel> sums_;
};

}  // namespace plait
