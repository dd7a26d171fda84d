// A std::vector whose resize() does not initialise trivial elements, because large results are
// written by several threads, and to write them twice costs as much as to compute them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "plait/base/array.h"

namespace plait {

// An allocator that leaves elements without a value uninitialised, and puts large arrays on huge
// pages, as Buffer does.
template <class T>
struct RawAllocator {
  static_assert(std::is_trivially_copyable_v<T>);
  using value_type = T;

  RawAllocator() = default;
  template <class Other>
  RawAllocator(const RawAllocator<Other>&) {}  // NOLINT: allocators convert

  // These members are those of std::allocator.
  T* allocate(std::size_t size) {
    if (size > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    void* const memory = ::operator new(size * sizeof(T), alignment(size));
    if (is_huge(size)) madvise(memory, size * sizeof(T), MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t size) { ::operator delete(memory, alignment(size)); }
  template <class Element, class... Args>
  void construct(Element* place, Args&&... args) {
    if constexpr (sizeof...(Args) > 0) ::new (place) Element(std::forward<Args>(args)...);
  }
  friend bool operator==(const RawAllocator&, const RawAllocator&) { return true; }

 private:
  static bool is_huge(std::size_t size) { return size * sizeof(T) >= 2 * kHugePage; }
  static std::align_val_t alignment(std::size_t size) {
    return std::align_val_t{is_huge(size) ? kHugePage : kCacheLine};
  }
};

template <class T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace plait
