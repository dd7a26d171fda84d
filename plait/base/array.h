// Memory for large arrays.
//
// Buffer<T>  owns writable memory: 64-byte aligned, not initialised, and on huge pages if it is
//   large, because graph work reads rows at random and would otherwise miss the TLB on nearly
//   every row.
// Array<T>   is a read-only view that keeps its memory alive, whoever owns it: a Buffer, a vector
//   or a memory-mapped file. Copies are cheap and share the memory.
//
// Indices are not checked.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace plait {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Writable memory of one owner. It can be moved, not copied.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  // Throws std::bad_alloc when there is no memory.
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (size > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = size * sizeof(T);
    const bool huge = bytes >= 2 * kHugePage;
    const std::align_val_t alignment{huge ? kHugePage : kCacheLine};
    void* memory = ::operator new(bytes, alignment);
    data_ = std::unique_ptr<T, Free>(static_cast<T*>(memory), Free{alignment});
    if (huge) madvise(memory, bytes, MADV_HUGEPAGE);
  }
  // Makes a buffer whose elements all have this value.
  Buffer(std::size_t size, T value) : Buffer(size) { std::fill_n(data(), size, value); }

  // These members act as in a std::vector of fixed size.
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  // The elements, writable or not.
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }
  // Forgets the tail; the memory stays.
  void truncate(std::size_t size) { size_ = size < size_ ? size : size_; }

 private:
  struct Free {
    std::align_val_t alignment{kCacheLine};
    void operator()(T* p) const { ::operator delete(p, alignment); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

// A read-only view that keeps its owner alive.
template <class T>
class Array {
 public:
  Array() = default;
  // A view of memory that lives as long as `owner`; the other constructors take ownership.
  Array(std::shared_ptr<const void> owner, std::span<const T> view)
      : owner_(std::move(owner)), view_(view) {}
  Array(Buffer<T> buffer) : Array(own(std::move(buffer))) {}       // NOLINT: a plain wrapper
  Array(std::vector<T> vector) : Array(own(std::move(vector))) {}  // NOLINT: a plain wrapper

  const T* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  const T& operator[](std::size_t i) const { return view_[i]; }
  // The elements.
  auto begin() const { return view_.begin(); }
  auto end() const { return view_.end(); }
  const T& back() const { return view_.back(); }
  std::span<const T> span() const { return view_; }
  // Returns the elements from `first` on, in the same memory.
  Array from(std::size_t first) const { return {owner_, view_.subspan(first)}; }
  operator std::span<const T>() const { return view_; }  // NOLINT: a view of itself

 private:
  template <class Container>
  static Array own(Container container) {
    auto owner = std::make_shared<const Container>(std::move(container));
    return Array(owner, std::span<const T>(owner->data(), owner->size()));
  }
  std::shared_ptr<const void> owner_;
  std::span<const T> view_;
};

}  // namespace plait
