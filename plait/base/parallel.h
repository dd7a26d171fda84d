// Threads, through OpenMP. The number of threads is OpenMP's own (OMP_NUM_THREADS).
//
// Work is cut into chunks whose boundaries depend on the problem alone, never on the number of
// threads, so that results are equal for every thread count.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>

namespace plait {

// Returns the number of threads that work begun by this thread goes to.
inline int thread_count() { return omp_get_max_threads(); }

// While it lives, work that this thread begins goes to so many threads.
class ThreadCount {
 public:
  // Sets the number; the destructor restores the old one.
  explicit ThreadCount(int count) : before_(thread_count()) { omp_set_num_threads(count); }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

// Calls body(i) once for every i in [0, count), threads taking the next i as they become free.
// The first exception thrown by a body is rethrown here; bodies not yet begun are then skipped.
template <class Body>
void parallel_for(std::size_t count, Body&& body) {
  if (count == 0) return;
  if (count == 1 || thread_count() == 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t i = 0; i < count; ++i) {
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      body(i);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

// Calls body(begin, end) for consecutive pieces of [0, size) of `grain` each (the last is shorter).
// Throws as parallel_for().
template <class Body>
void parallel_blocks(std::size_t size, std::size_t grain, Body&& body) {
  parallel_for((size + grain - 1) / grain, [&](std::size_t i) {
    const std::size_t begin = i * grain;
    body(begin, begin + grain < size ? begin + grain : size);
  });
}

// Returns the smallest i in [0, size) for which where(i) holds, or `size`. Threads look at pieces
// of `grain` each, 256 at a time without branches, because where() hardly ever holds; the answer
// does not depend on their number. where() has no effects, and costs little.
template <class Where>
std::size_t first_where(std::size_t size, std::size_t grain, Where where) {
  constexpr std::size_t kAtOnce = 256;
  std::atomic<std::size_t> first{size};
  parallel_blocks(size, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && i < first.load(std::memory_order_relaxed);
         i += kAtOnce) {
      const std::size_t stop = std::min(end, i + kAtOnce);
      bool any = false;
      for (std::size_t k = i; k < stop; ++k) any |= where(k);
      if (!any) continue;
      std::size_t found =
          i;  // there may be none: another thread may have changed what is looked at
      while (found < stop && !where(found)) ++found;
      if (found == stop) continue;
      std::size_t seen = first.load();
      while (found < seen && !first.compare_exchange_weak(seen, found)) {
      }
      return;
    }
  });
  return first;
}

}  // namespace plait
