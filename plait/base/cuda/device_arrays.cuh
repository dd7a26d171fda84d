// Several arrays of the GPU in one allocation, because small steps are bound by the number of
// allocations.
#pragma once

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Uninitialised memory of trivial types on the current GPU, which this object owns. First add() all
// arrays, then allocate().
class DeviceArrays {
 public:
  // allocate() will make `array` point to so many values, at a multiple of 256 bytes; until then,
  // and for a size of 0, it is null. `array` itself stays where it is until then.
  template <class T>
  void add(T*& array, std::uint64_t size) {
    constexpr std::uint64_t kAlign = 256;
    array = nullptr;
    if (size == 0) return;
    places_.push_back({&array, bytes_, [](void* to, std::byte* at) {
                         *static_cast<T**>(to) = reinterpret_cast<T*>(at);
                       }});
    bytes_ += (size * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  }
  // Throws DoesNotFitError.
  void allocate(const std::optional<FromPool>& pool) {
    memory_ = DeviceArray<std::byte>(bytes_, pool);
    for (const Place& place : places_) place.set(place.array, memory_.data() + place.offset);
    places_.clear();
  }

 private:
  struct Place {
    void* array;
    std::uint64_t offset;
    void (*set)(void* array, std::byte* at);
  };

  std::vector<Place> places_;
  std::uint64_t bytes_ = 0;
  DeviceArray<std::byte> memory_;
};

}  // namespace plait
