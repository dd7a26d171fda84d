// Values that threads of either device read and change at the same time, without order between them
// (relaxed): the operators of this room order what comes before a round and after it.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

#include "plait/base/host_device.h"

namespace plait {

// Returns the value, also where another thread has just changed it: on a GPU it is not read from
// a cache of the thread's own multiprocessor.
template <class T>
PLAIT_HOST_DEVICE T load(const T* value) {
#ifdef __CUDA_ARCH__
  return *static_cast<const volatile T*>(value);
#else
  return std::atomic_ref(*const_cast<T*>(value)).load(std::memory_order_relaxed);
#endif
}
template <class T>
PLAIT_HOST_DEVICE void store(T* value, T now) {
#ifdef __CUDA_ARCH__
  *static_cast<volatile T*>(value) = now;
#else
  std::atomic_ref(*value).store(now, std::memory_order_relaxed);
#endif
}

#ifdef __CUDACC__
// The types of the same size for which CUDA has atomic functions.
template <class T>
using AtomicOf = std::conditional_t<sizeof(T) == 8, unsigned long long, T>;
#endif

// Gives the value the least of both, and returns what it was. The integer is unsigned.
template <std::unsigned_integral T>
PLAIT_HOST_DEVICE T take_min(T* value, T other) {
#ifdef __CUDA_ARCH__
  return static_cast<T>(
      atomicMin(reinterpret_cast<AtomicOf<T>*>(value), static_cast<AtomicOf<T>>(other)));
#else
  std::atomic_ref<T> mine(*value);
  T old = mine.load(std::memory_order_relaxed);
  while (other < old && !mine.compare_exchange_weak(old, other, std::memory_order_relaxed)) {
  }
  return old;
#endif
}

// Adds to the value, wrapping, and returns what it was.
template <std::unsigned_integral T>
PLAIT_HOST_DEVICE T take_sum(T* value, T more) {
#ifdef __CUDA_ARCH__
  return static_cast<T>(
      atomicAdd(reinterpret_cast<AtomicOf<T>*>(value), static_cast<AtomicOf<T>>(more)));
#else
  return std::atomic_ref<T>(*value).fetch_add(more, std::memory_order_relaxed);
#endif
}

// Replaces the value if it is `old`. Returns what it was.
template <std::unsigned_integral T>
PLAIT_HOST_DEVICE T replace_if(T* value, T old, T now) {
#ifdef __CUDA_ARCH__
  return static_cast<T>(atomicCAS(reinterpret_cast<AtomicOf<T>*>(value),
                                  static_cast<AtomicOf<T>>(old), static_cast<AtomicOf<T>>(now)));
#else
  std::atomic_ref<T>(*value).compare_exchange_strong(old, now, std::memory_order_relaxed);
  return old;
#endif
}

// Sets a bit, and tells whether this call did so.
PLAIT_HOST_DEVICE inline bool set_bit(std::uint32_t* words, std::uint64_t bit) {
  const std::uint32_t mask = std::uint32_t{1} << bit % 32;
  std::uint32_t* const word = words + bit / 32;
  if ((load(word) & mask) != 0) return false;
#ifdef __CUDA_ARCH__
  return (atomicOr(word, mask) & mask) == 0;
#else
  return (std::atomic_ref(*word).fetch_or(mask, std::memory_order_relaxed) & mask) == 0;
#endif
}

}  // namespace plait
